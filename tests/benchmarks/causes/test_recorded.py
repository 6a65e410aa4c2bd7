"""The third measurement: recorded answers, what the reader is given, and the labels."""

import json

from benchmarks.causes.recorded import NONE, Recorded, found_cause, labels, recorded_answers, report, sheet
from toolbench.evals.causes.wire_causes import all_causes

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
    }


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
