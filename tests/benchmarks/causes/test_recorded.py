"""The third measurement: recorded answers, what the reader is given, and the labels."""

import json

from benchmarks.causes.recorded import NONE, TESTS, Recorded, found_cause, labels, recorded_answers, report, sheet
from toolbench.evals.causes.table import all_causes

TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}


def answer(message: object, status: int = 200) -> Recorded:
    choices = [{"message": message, "finish_reason": "stop"}]
    return Recorded(status, json.dumps({"choices": choices}), (TOOL,))


def test_recorded_answers_are_some_three_hundred_each_once() -> None:
    names = [one.name for one in recorded_answers()]
    assert len(names) == len(set(names)) >= 300


def test_sheet_shows_answers_and_codes_and_no_name_of_a_case() -> None:
    shown = sheet()
    assert {row["code"] for row in shown["causes"]} == set(all_causes())
    assert {frozenset(one) for one in shown["answers"]} <= {
        frozenset({"name", "status", "body", "tools"}),
        frozenset({"name", "status", "body", "tools", "most_argument_bytes"}),
        frozenset({"name", "status", "body", "tools", "messages"}),
    }


def test_sheet_shows_the_request_where_its_history_may_be_refused() -> None:
    """The words of such a refusal fit a model's own bad call too."""
    wanted: dict[str, object] = {}
    for path in (TESTS / "providers" / "data" / "local").glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        sent = told["request"].get("messages", [])
        refused = told["status"] >= 400 and any(message["role"] == "assistant" for message in sent)
        wanted[told["body"]] = sent if refused else None
    shown = {one["body"]: one.get("messages") for one in sheet()["answers"] if one["body"] in wanted}
    assert shown == {body: wanted[body] for body in shown}
    assert any(shown.values())
    assert not all(shown.values())


def test_labels_belong_to_answers_that_are_shown() -> None:
    assert {*labels()} <= {one.name for one in recorded_answers()}


def test_report_names_answers_without_a_label() -> None:
    first, *rest = recorded_answers()
    told = list(report({one.name: found_cause(one) for one in rest}))
    assert told[-1] == f"{first.name}: no reader has labelled it."


def test_found_cause_of_words_a_call_and_an_error() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    assert found_cause(answer({"content": "Sure."})) == "no_call"
    assert found_cause(answer({"content": None, "tool_calls": [call]})) == NONE
    assert found_cause(Recorded(503, "{}", (TOOL,))) == "server_failed"


def test_labels_are_codes_of_the_table() -> None:
    assert set(labels().values()) <= {*all_causes(), NONE}


def test_report_lists_every_answer_on_which_they_differ() -> None:
    one = recorded_answers()[0]
    right, wrong = found_cause(one), "our_error"
    assert "1 of them (100.00%)" in "\n".join(report({one.name: right}))
    lines = list(report({one.name: wrong}))
    assert lines[-1].startswith(f"{one.name}: table {right}, reader {wrong}: ")
