import json
from typing import Any

import pytest

from tests.engine.single_turns import build_body, prepare
from toolbench.engine.methods.constrained import ConstrainedMethod
from toolbench.engine.tools.definitions import ToolDefinition

TOOLS = tuple(
    ToolDefinition(name, "A tool.", {"type": "object", "properties": {"a": {"type": "string"}}}) for name in "fg"
)
TOOLS_JSON = [tool.to_openai() for tool in TOOLS]
BODY: dict[str, Any] = {"messages": [{"role": "user", "content": "hi"}]}


def build_sent_schema(choice: Any) -> Any:
    sent = ConstrainedMethod("response_format").prepare_body(BODY, TOOLS_JSON, choice)
    assert sent["response_format"]["type"] == "json_schema"
    return sent["response_format"]["json_schema"]["schema"]


def list_allowed_answers(schema: Any) -> list[str]:
    alternatives = schema.get("anyOf", [schema])
    return [(a["properties"].get("name") or {"enum": ["final"]})["enum"][0] for a in alternatives]


@pytest.mark.parametrize(
    ("choice", "allowed"),
    [
        ("auto", ["f", "g", "final"]),
        (None, ["f", "g", "final"]),
        ("required", ["f", "g"]),
        ("any", ["f", "g"]),
        ({"type": "function", "function": {"name": "g"}}, ["g"]),
        ({"type": "function", "function": {"name": "nope"}}, ["f", "g"]),
    ],
)
def test_tool_choice_decides_which_answers_schema_allows(choice: Any, allowed: list[str]) -> None:
    assert list_allowed_answers(build_sent_schema(choice)) == allowed


def test_constrained_prompt_mentions_final_answer_only_if_allowed() -> None:
    for choice, is_mentioned in (("auto", True), ("required", False)):
        sent = ConstrainedMethod("response_format").prepare_body(BODY, TOOLS_JSON, choice)
        assert ('{"final": "TEXT"}' in sent["messages"][0]["content"]) is is_mentioned


def test_grammar_has_same_schema_in_llguidance_syntax_with_compact_space() -> None:
    sent = ConstrainedMethod("grammar").prepare_body(BODY, TOOLS_JSON, "auto")
    head, schema = sent["grammar"].split("\nstart: %json ")
    assert head == "%llguidance {}"
    sent_schema = json.loads(schema)
    assert sent_schema.pop("x-guidance") == {"whitespace_flexible": False}
    assert list_allowed_answers(sent_schema) == list_allowed_answers(build_sent_schema("auto"))
    assert "response_format" not in sent


def parse_text(text: str, tools: tuple[ToolDefinition, ...] = TOOLS) -> tuple[int, str, str, list[str], bool]:
    parsed = ConstrainedMethod("grammar").parse_answer({"role": "assistant", "content": text}, tools)
    return (
        len(parsed.calls),
        parsed.text,
        parsed.method_used,
        [f.code for f in parsed.findings],
        parsed.has_unexecuted_call,
    )


def test_constrained_answer_with_call_is_parsed() -> None:
    (call,) = (
        ConstrainedMethod("grammar").parse_answer({"content": ' {"name": "g", "arguments": {"a": "ü"}} '}, TOOLS).calls
    )
    assert call == {
        "id": "constrained_call_1",
        "type": "function",
        "function": {"name": "g", "arguments": '{"a":"ü"}'},
    }


def test_constrained_answer_with_final_is_text() -> None:
    assert parse_text('{"final": "Done."}') == (0, "Done.", "constrained", [], False)
    assert parse_text('{"final": "Done."}', ()) == (0, "Done.", "constrained", [], False)


def test_constrained_answer_excludes_reasoning() -> None:
    assert parse_text('<think>\n{"final": "No."}\n</think>\n{"final": "Done."}') == (
        0,
        "Done.",
        "constrained",
        [],
        False,
    )


@pytest.mark.parametrize("text", ["<think>\n\n</think>\n\n{}", "<think></think>{}", "{}</think>"])
def test_constrained_answer_excludes_empty_reasoning(text: str) -> None:
    assert parse_text(text.format('{"name": "f", "arguments": {}}')) == (1, "", "constrained", [], False)


@pytest.mark.parametrize(
    "text", ['{"name": "f", "arguments": {"a": "cut', '{"name": "nope", "arguments": {}}', '{"final": 1}']
)
def test_constrained_json_outside_schema_is_parse_error(text: str) -> None:
    assert parse_text(text) == (0, text, "text", ["parse_error"], True)


def test_free_text_despite_constraint_is_constraint_ignored() -> None:
    assert parse_text("Sure!") == (0, "Sure!", "text", ["constraint_ignored"], False)


def test_free_text_without_tools_is_an_answer() -> None:
    assert parse_text("Sure!", ()) == (0, "Sure!", "text", [], False)


def test_build_request_keeps_options_beside_the_constraint_in_their_field() -> None:
    setup = prepare({"output_config": {"effort": "low"}}, method="constrained", constraint="output_config")
    sent = build_body(setup)["output_config"]
    assert (sent["effort"], sent["format"]["type"]) == ("low", "json_schema")
