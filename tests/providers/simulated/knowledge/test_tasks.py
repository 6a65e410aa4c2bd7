"""Tests of the known tasks of simulated models."""

import pytest

from toolbench.evals import scenarios
from toolbench.providers.simulated.chat_request import parse_chat_request
from toolbench.providers.simulated.knowledge.tasks import build_pattern, find_known_task, render_final_reply

KNOWN_AS_FACTS = {"restraint_plain"}  # its questions are known as facts, not as tasks


def build_body(question: str, *more: dict[str, str]) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": question}, *more]}


@pytest.mark.parametrize(
    "slug",
    [
        scenario.slug
        for scenario in scenarios.list_scenarios()
        if scenario.group in scenarios.PACKS and scenario.slug not in KNOWN_AS_FACTS
    ],
)
def test_find_known_task_knows_every_wording_of_a_pack(slug: str) -> None:
    for seed in range(12):
        instance = scenarios.lookup_scenario(slug).draw_instance(seed)
        history = [dict(message) for message in instance.history]
        body = {"messages": [*history, {"role": "user", "content": instance.user_text}]}
        assert find_known_task(parse_chat_request(body)) is not None, instance.user_text


def test_find_known_task_of_another_question_is_none() -> None:
    assert find_known_task(parse_chat_request(build_body("What is the weather in Oslo?"))) is None


def test_build_pattern_repeated_name_matches_equal_values_only() -> None:
    assert build_pattern("$who and $who", {}).fullmatch("Mara and Mara")
    assert not build_pattern("$who and $who", {}).fullmatch("Mara and Ivo")
    assert build_pattern("$who订桌", {}).fullmatch("王芳订桌")


def test_render_final_reply_uses_the_results_and_waits_for_them() -> None:
    question = "In which depot is order 1234?"
    assert render_final_reply(parse_chat_request(build_body(question))) == ""
    result = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": '{"ok":true,"tool_name":"track_order","data":{"depot":"Gdansk"}}',
    }
    assert render_final_reply(parse_chat_request(build_body(question, result))) == "It is in the depot Gdansk."


def test_parse_chat_request_web_page_is_a_failed_report() -> None:
    result = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": '{"ok":true,"tool_name":"track_order","data":{"value":"<html>"}}',
    }
    (report,) = parse_chat_request(build_body("In which depot is order 1234?", result)).reports
    assert not report.ok
