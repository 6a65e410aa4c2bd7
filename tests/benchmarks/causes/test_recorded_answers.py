"""The third measurement: recorded answers, what the reader is given, and the labels."""

import json

from benchmarks.causes.recorded_answers import (
    NO_CAUSE,
    TESTS_FOLDER,
    RecordedAnswer,
    build_sheet,
    find_table_cause,
    iter_report_lines,
    list_recorded_answers,
    read_labels,
)
from toolbench.evals.causes.table import load_causes

TOOL = {"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}


def answer(message: object, status: int = 200) -> RecordedAnswer:
    choices = [{"message": message, "finish_reason": "stop"}]
    return RecordedAnswer(status, json.dumps({"choices": choices}), (TOOL,))


def test_recorded_answers_are_some_three_hundred_each_once() -> None:
    names = [answer.name for answer in list_recorded_answers()]
    assert len(names) == len(set(names)) >= 300


def test_sheet_shows_answers_and_codes_and_no_name_of_a_case() -> None:
    shown = build_sheet()
    assert {row["code"] for row in shown["causes"]} == set(load_causes())
    assert {frozenset(item) for item in shown["answers"]} <= {
        frozenset({"name", "status", "body", "tools"}),
        frozenset({"name", "status", "body", "tools", "most_argument_bytes"}),
        frozenset({"name", "status", "body", "tools", "messages"}),
    }


def test_sheet_shows_the_request_where_its_history_may_be_refused() -> None:
    """The words of such a refusal fit a model's own bad call too."""
    wanted: dict[str, object] = {}
    for path in (TESTS_FOLDER / "providers" / "data" / "local").glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        sent = told["request"].get("messages", [])
        refused = told["status"] >= 400 and any(message["role"] == "assistant" for message in sent)
        wanted[told["body"]] = sent if refused else None
    shown = {item["body"]: item.get("messages") for item in build_sheet()["answers"] if item["body"] in wanted}
    assert shown == {body: wanted[body] for body in shown}
    assert any(shown.values())
    assert not all(shown.values())


def test_labels_belong_to_answers_that_are_shown() -> None:
    assert {*read_labels()} <= {answer.name for answer in list_recorded_answers()}


def test_report_names_answers_without_a_label() -> None:
    first, *rest = list_recorded_answers()
    told = list(iter_report_lines({item.name: find_table_cause(item) for item in rest}))
    assert told[-1] == f"{first.name}: no reader has labelled it."


def test_found_cause_of_words_a_call_and_an_error() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    assert find_table_cause(answer({"content": "Sure."})) == "no_call"
    assert find_table_cause(answer({"content": None, "tool_calls": [call]})) == NO_CAUSE
    assert find_table_cause(RecordedAnswer(503, "{}", (TOOL,))) == "server_failed"


def test_labels_are_codes_of_the_table() -> None:
    assert set(read_labels().values()) <= {*load_causes(), NO_CAUSE}


def test_report_lists_every_answer_on_which_they_differ() -> None:
    one = list_recorded_answers()[0]
    right, wrong = find_table_cause(one), "our_error"
    assert "1 of them (100.00%)" in "\n".join(iter_report_lines({one.name: right}))
    lines = list(iter_report_lines({one.name: wrong}))
    assert lines[-1].startswith(f"{one.name}: table {right}, reader {wrong}: ")
