import json
from typing import Any

import pytest

from toolbench.engine.methods.constrained import ConstrainedMethod
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = tuple(
    ToolDefinition(name, "A tool.", {"type": "object", "properties": {"a": {"type": "string"}}}) for name in "fg"
)
TOOLS_JSON = [tool.to_openai() for tool in TOOLS]
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def schema_sent(choice: Any) -> Any:
    sent = ConstrainedMethod("response_format").prepare_body(BODY, TOOLS, TOOLS_JSON, choice)
    assert sent["response_format"]["type"] == "json_schema"
    return sent["response_format"]["json_schema"]["schema"]


def answers(schema: Any) -> list[str]:
    alternatives = schema.get("anyOf", [schema])
    return [(a["properties"].get("name") or {"enum": ["final"]})["enum"][0] for a in alternatives]


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        ("auto", ["f", "g", "final"]),
        (None, ["f", "g", "final"]),
        ("required", ["f", "g"]),
        ({"type": "function", "function": {"name": "g"}}, ["g"]),
        ({"type": "function", "function": {"name": "nope"}}, ["f", "g"]),
    ],
)
def test_the_choice_says_which_answers_are_allowed(choice: Any, allowed: list[str]) -> None:
    assert answers(schema_sent(choice)) == allowed


def test_the_prompt_speaks_of_a_final_answer_only_where_one_is_allowed() -> None:
    for choice, said in (("auto", True), ("required", False)):
        sent = ConstrainedMethod("response_format").prepare_body(BODY, TOOLS, TOOLS_JSON, choice)
        assert ('{"final": "TEXT"}' in sent["messages"][0]["content"]) is said


def test_grammar_has_same_schema_in_llguidance_syntax_with_compact_space() -> None:
    sent = ConstrainedMethod("grammar").prepare_body(BODY, TOOLS, TOOLS_JSON, "auto")
    head, schema = sent["grammar"].split("\nstart: %json ")
    assert head == "%llguidance {}"
    sent_schema = json.loads(schema)
    assert sent_schema.pop("x-guidance") == {"whitespace_flexible": False}
    assert answers(sent_schema) == answers(schema_sent("auto"))
    assert "response_format" not in sent


def read(text: str, tools: tuple[ToolDefinition, ...] = TOOLS) -> tuple[int, str, str, list[str], bool]:
    found = ConstrainedMethod("grammar").parse_answer({"role": "assistant", "content": text}, tools)
    return len(found.calls), found.text, found.method_used, [f.code for f in found.findings], found.has_unexecuted_call


def test_a_call_is_read() -> None:
    (call,) = (
        ConstrainedMethod("grammar").parse_answer({"content": ' {"name": "g", "arguments": {"a": "ü"}} '}, TOOLS).calls
    )
    assert call == {
        "id": "constrained_call_1",
        "type": "function",
        "function": {"name": "g", "arguments": '{"a":"ü"}'},
    }


def test_a_final_answer_is_text() -> None:
    assert read('{"final": "Done."}') == (0, "Done.", "constrained", [], False)
    assert read('{"final": "Done."}', ()) == (0, "Done.", "constrained", [], False)


def test_what_was_thought_before_is_no_part_of_the_answer() -> None:
    assert read('<think>\n{"final": "No."}\n</think>\n{"final": "Done."}') == (0, "Done.", "constrained", [], False)


@pytest.mark.parametrize(
    "text", ['{"name": "f", "arguments": {"a": "cut', '{"name": "nope", "arguments": {}}', '{"final": 1}']
)
def test_json_that_is_no_answer_of_the_schema_is_reported(text: str) -> None:
    assert read(text) == (0, text, "text", ["parse_error"], True)


def test_free_text_means_that_the_endpoint_passed_over_the_constraint() -> None:
    assert read("Sure!") == (0, "Sure!", "text", ["constraint_ignored"], False)


def test_free_text_is_an_answer_where_nothing_was_constrained() -> None:
    assert read("Sure!", ()) == (0, "Sure!", "text", [], False)
