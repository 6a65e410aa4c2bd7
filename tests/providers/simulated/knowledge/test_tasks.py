"""What a player knows by heart."""

import pytest

from toolbench.evals import scenarios
from toolbench.providers.simulated.chat_request import parse_chat_request
from toolbench.providers.simulated.knowledge.tasks import build_pattern, find_known_task, render_final_reply

BY_FACTS = {"restraint_plain"}  # such questions are known as facts


def body(question: str, *more: dict[str, str]) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": question}, *more]}


@pytest.mark.parametrize(
    "slug",
    [
        scenario.slug
        for scenario in scenarios.list_scenarios()
        if scenario.group in scenarios.PACKS and scenario.slug not in BY_FACTS
    ],
)
def test_every_wording_of_a_pack_is_known(slug: str) -> None:
    for seed in range(12):
        instance = scenarios.lookup_scenario(slug).draw_instance(seed)
        history = [dict(message) for message in instance.history]
        asked = {"messages": [*history, {"role": "user", "content": instance.user_text}]}
        assert find_known_task(parse_chat_request(asked)) is not None, instance.user_text


def test_a_question_of_another_kind_is_no_errand() -> None:
    assert find_known_task(parse_chat_request(body("What is the weather in Oslo?"))) is None


def test_a_name_that_comes_twice_is_the_same_both_times() -> None:
    assert build_pattern("$who and $who", {}).fullmatch("Mara and Mara")
    assert not build_pattern("$who and $who", {}).fullmatch("Mara and Ivo")
    assert build_pattern("$who订桌", {}).fullmatch("王芳订桌")


def test_a_reply_is_taken_from_the_results_and_waits_for_them() -> None:
    question = "In which depot is order 1234?"
    assert render_final_reply(parse_chat_request(body(question))) == ""
    told = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": '{"ok":true,"tool_name":"track_order","data":{"depot":"Gdansk"}}',
    }
    assert render_final_reply(parse_chat_request(body(question, told))) == "It is in the depot Gdansk."


def test_a_web_page_is_no_answer() -> None:
    page = {
        "role": "tool",
        "tool_call_id": "c1",
        "content": '{"ok":true,"tool_name":"track_order","data":{"value":"<html>"}}',
    }
    (report,) = parse_chat_request(body("In which depot is order 1234?", page)).reports
    assert not report.ok
