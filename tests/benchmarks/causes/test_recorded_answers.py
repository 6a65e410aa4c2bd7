"""Third measurement: recorded answers, the sheet for readers, and the readers' labels."""

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


def build_answer(message: object, status: int = 200) -> RecordedAnswer:
    choices = [{"message": message, "finish_reason": "stop"}]
    return RecordedAnswer(status, json.dumps({"choices": choices}), (TOOL,))


def test_list_recorded_answers_has_300_distinct_answers() -> None:
    names = [answer.name for answer in list_recorded_answers()]
    assert len(names) == len(set(names)) >= 300


def test_build_sheet_has_answers_and_codes_without_case_names() -> None:
    shown = build_sheet()
    assert {row["code"] for row in shown["causes"]} == set(load_causes())
    assert {frozenset(item) for item in shown["answers"]} <= {
        frozenset({"name", "status", "body", "tools"}),
        frozenset({"name", "status", "body", "tools", "most_argument_bytes"}),
        frozenset({"name", "status", "body", "tools", "messages"}),
    }


def test_build_sheet_adds_messages_to_refused_histories() -> None:
    """The text of such a refusal would also fit an invalid call of the model itself."""
    expected_messages: dict[str, object] = {}
    for path in (TESTS_FOLDER / "providers" / "data" / "local").glob("*.json"):
        recording = json.loads(path.read_text(encoding="utf-8"))
        sent = recording["request"].get("messages", [])
        refused = recording["status"] >= 400 and any(message["role"] == "assistant" for message in sent)
        expected_messages[recording["body"]] = sent if refused else None
    shown = {
        item["body"]: item.get("messages") for item in build_sheet()["answers"] if item["body"] in expected_messages
    }
    assert shown == {body: expected_messages[body] for body in shown}
    assert any(shown.values())
    assert not all(shown.values())


def test_read_labels_names_only_recorded_answers() -> None:
    assert {*read_labels()} <= {answer.name for answer in list_recorded_answers()}


def test_iter_report_lines_names_answers_without_label() -> None:
    first, *rest = list_recorded_answers()
    lines = list(iter_report_lines({item.name: find_table_cause(item) for item in rest}))
    assert lines[-1] == f"{first.name}: no reader has labelled it."


def test_find_table_cause_of_text_call_and_error() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    assert find_table_cause(build_answer({"content": "Sure."})) == "no_call"
    assert find_table_cause(build_answer({"content": None, "tool_calls": [call]})) == NO_CAUSE
    assert find_table_cause(RecordedAnswer(503, "{}", (TOOL,))) == "server_failed"


def test_read_labels_returns_codes_of_the_table() -> None:
    assert set(read_labels().values()) <= {*load_causes(), NO_CAUSE}


def test_iter_report_lines_lists_differing_answers() -> None:
    recorded_answer = list_recorded_answers()[0]
    right, wrong = find_table_cause(recorded_answer), "our_error"
    assert "1 of them (100.00%)" in "\n".join(iter_report_lines({recorded_answer.name: right}))
    lines = list(iter_report_lines({recorded_answer.name: wrong}))
    assert lines[-1].startswith(f"{recorded_answer.name}: table {right}, reader {wrong}: ")
