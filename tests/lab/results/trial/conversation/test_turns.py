"""The conversation of a trial, with calls beside the expected ones."""

import json
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.engine.types import JsonObject
from toolbench.evals import scenarios
from toolbench.lab.models import Case, CaseSet, CaseVersion, Run, Trial
from toolbench.lab.results.trial.conversation.turns import TrialConversation
from toolbench.lab.results.trial.page import get_trial_page
from toolbench.lab.results.trial.page_query import CONVERSATION
from toolbench.lab.results.trial_list.filter import TrialFilter

pytestmark = pytest.mark.django_db

REQUEST = json.dumps(
    {
        "messages": [
            {"role": "developer", "content": "Use tools.\n" * 30},
            {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
            {"role": "assistant", "tool_calls": [{"function": {"name": "get_weather", "arguments": "{}"}}]},
        ],
        "tools": [{"type": "function", "function": {"name": "get_weather"}}],
    }
).encode()


def make_weather_trial(city: str | None, **fields: Any) -> Trial:
    """Make a trial of the weather scenario with one call for `city`; None stands for the expected city."""
    scenario = scenarios.lookup_scenario("weather")
    cell = make_cell(make_config(make_run()), "weather", scenario_version=scenario.version, instance_kind="drawn")
    trial = make_trial(cell, "fail", instance_seed=7, end="FINAL", first_bad_ordinal=1, **fields)
    expected_city = scenario.draw_instance(7).values["city"]
    call = {"id": "c1", "name": "get_weather", "arguments": json.dumps({"city": city or expected_city, "unit": "C"})}
    facts = {"text": "I look it up.", "calls": [call], "message": {"reasoning_content": "Hm."}}
    make_step(trial, bodies={"request": REQUEST, "facts": facts}, output_tokens=1234)
    result = {
        "arguments": {"city": city or expected_city, "unit": "C"},
        "envelope": {"ok": True, "data": {"degrees": 7}},
    }
    make_step(trial, kind="tool", tool_name="get_weather", bodies={"facts": result})
    return trial


def read_conversation(trial: Trial) -> TrialConversation:
    conversation = get_trial_page(trial.pk, TrialFilter(), view=CONVERSATION).conversation
    assert conversation is not None
    return conversation


def test_conversation_has_roles_in_order_with_tools_and_texts() -> None:
    turns = read_conversation(make_weather_trial(None)).messages
    assert [turn.role for turn in turns] == ["system", "user", "assistant", "assistant", "tool"]
    assert turns[0].notes == ("1 tool offered: get_weather",)
    assert turns[0].text is not None
    assert (turns[0].text.head.count("\n"), turns[0].text.lines) == (7, 30)
    assert turns[2].sent_calls == ("get_weather {}",)
    assert turns[3].notes == ("turn 1", "0.1 s", "1,234 tokens")
    assert turns[3].reasoning is not None
    assert turns[4].result is not None


def test_conversation_marks_an_expected_call_without_a_comparison() -> None:
    conversation = read_conversation(make_weather_trial(None))
    (call,) = conversation.messages[3].calls
    assert (call.mark, call.word, call.differences, call.expected) == ("pass", "as expected", (), None)
    assert (conversation.missing, conversation.note) == ((), "")


def test_conversation_shows_a_wrong_call_beside_the_expected_one() -> None:
    (call,) = read_conversation(make_weather_trial("Atlantis")).messages[3].calls
    assert (call.mark, call.word, call.is_first_bad) == ("fail", "arguments differ", True)
    assert call.expected is not None
    assert [line.mark for line in call.expected.lines] == ["", "good", ""]
    assert [(line.path, line.word) for line in call.made.lines if line.mark == "bad"] == [("$.city", "differs")]


def test_conversation_lists_an_expected_call_that_is_missing() -> None:
    trial = make_weather_trial(None)
    trial.steps.all().delete()
    make_step(trial, bodies={"facts": {"text": "It rains."}})
    assert [tool for tool, _ in read_conversation(trial).missing] == ["get_weather"]


def test_conversation_shows_argument_problems_and_the_tools_error() -> None:
    trial = make_trial(make_cell(make_config(make_run()), "type_error_recovery"), "fail", first_bad_ordinal=1)
    call: JsonObject = {"id": "c1", "name": "state_patch", "arguments": {"ops": "[]"}}
    make_step(trial, bodies={"facts": {"calls": [call], "said": "Go on."}})
    facts = {
        "arguments": {"ops": "[]"},
        "schema_errors": [
            {"path": "$.ops", "kind": "type", "message": "expected array"},
            {"path": "$.workspace_id", "kind": "missing", "message": "is required"},
        ],
        "envelope": {"ok": False, "errors": [{"code": "INVALID_ARGUMENT_TYPE", "message": "$.ops must be an array."}]},
    }
    make_step(trial, kind="tool", tool_name="state_patch", ok=False, error_code="X", bodies={"facts": facts})
    conversation = read_conversation(trial)
    assert "no fixed arguments for state_patch" in conversation.note
    assert [turn.role for turn in conversation.messages] == ["user", "assistant", "tool"]
    (call_shown,) = conversation.messages[1].calls
    assert [(line.mark, line.path, line.word) for line in call_shown.made.lines if line.mark] == [
        ("bad", "$.ops", "string"), ("gone", "$.workspace_id", "missing"),
    ]  # fmt: skip
    assert conversation.messages[2].problem == ("INVALID_ARGUMENT_TYPE", "$.ops must be an array.")


def test_conversation_shows_a_failed_request_in_its_place() -> None:
    trial = make_weather_trial(None)
    make_step(trial, ok=False, status=429, error_code="RATE_LIMITED", error_message="Slow down.", turn=1)
    make_step(trial, turn=1, attempt=2, bodies={"facts": {"text": "Done.", "notice": "Tool not executed: no call."}})
    failed, answer = read_conversation(trial).messages[-2:]
    assert (failed.role, failed.title, failed.problem) == ("failed", "429 answer", ("RATE_LIMITED", "Slow down."))
    assert answer.problem[0] == "Tool not executed: no call."


@pytest.mark.parametrize(
    ("body", "role", "text"),
    [
        ({"system": [{"text": "Be brief."}], "messages": []}, "system", "Be brief."),
        ({"prompt": "<s>Hi"}, "prompt", "<s>Hi"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "7"}]}]}, "tool", "7"),
        ({"messages": [{"role": "odd", "content": "?"}]}, "user", "?"),
    ],
)
def test_conversation_reads_messages_of_every_wire_format(body: JsonObject, role: str, text: str) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    make_step(trial, bodies={"request": json.dumps(body).encode()})
    first = read_conversation(trial).messages[0]
    assert first.text is not None
    assert (first.role, first.text.head) == (role, text)


@pytest.mark.parametrize("body", [b"", b"[]", b'{"messages": 1, "tools": {}}', b'{"messages": [1, {"content": 2}]}'])
def test_conversation_of_an_unreadable_request_has_no_messages_of_it(body: bytes) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    make_step(trial, bodies={"request": body, "facts": {"text": "Hi"}})
    assert [turn.role for turn in read_conversation(trial).messages] == ["assistant"]


@pytest.mark.parametrize(("body", "roles"), [(b'{"messages": [', ["system", "assistant"]), (b"", ["assistant"])])
def test_conversation_says_if_a_request_is_too_large_but_not_if_removed(body: bytes, roles: list[str]) -> None:
    trial = make_trial(make_cell(make_config(make_run())))
    make_step(trial, bodies={"request": body, "facts": {"text": "Hi"}}, request_bytes=300_000)
    assert [turn.role for turn in read_conversation(trial).messages] == roles


def test_conversation_notes_why_no_call_is_expected() -> None:
    trial = make_weather_trial(None, scenario_version=99)
    assert "Version 99 of" in read_conversation(trial).note
    Run.objects.update(origin={"kind": "inspect"}, imported=True)
    assert "imported from a log" in read_conversation(trial).note


def test_conversation_marks_call_of_an_imported_trial_not_applicable() -> None:
    trial = make_weather_trial(None)
    Run.objects.update(origin={"kind": "inspect"}, imported=True)
    (call,) = read_conversation(trial).messages[3].calls
    assert (call.mark, call.word) == ("na", "")


def test_conversation_of_a_users_case_takes_one_more_query(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    definition: JsonObject = {
        "messages": [{"role": "user", "content": "Book it."}],
        "tools": [{"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}],
        "expect": {"calls": [{"name": "book", "arguments": {"seats": {"$type": "integer"}}}]},
    }
    case = Case.objects.create(slug="mine", title="Mine", set=CaseSet.objects.create(name="Own"), current=1)
    CaseVersion.objects.create(case=case, number=1, definition=json.dumps(definition))
    trial = make_trial(make_cell(make_config(make_run()), "mine", scenario_group="own"), "fail")
    call: JsonObject = {"id": "c1", "name": "book", "arguments": {"seats": "two"}}
    make_step(trial, bodies={"facts": {"calls": [call]}})
    make_step(trial, kind="tool", tool_name="book", bodies={"facts": {"arguments": {"seats": "two"}}})
    with django_assert_num_queries(7):
        (call_shown,) = read_conversation(trial).messages[0].calls
    assert [(difference.path, difference.got) for difference in call_shown.differences] == [("$.seats", "differs")]


def test_conversation_call_without_step_details_is_not_compared() -> None:
    trial = make_weather_trial(None)
    trial.steps.filter(kind="tool").delete()
    (call,) = read_conversation(trial).messages[3].calls
    assert (call.mark, call.word) == ("na", "not run")
