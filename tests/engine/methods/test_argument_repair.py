import json
from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS, build_answer, build_call
from toolbench.engine.loop.turn import parse_chat_turn
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.methods.argument_repair import get_mode_name, list_parse_errors, repair_calls
from toolbench.engine.methods.parsed_answer import ParsedAnswer
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.repairs import REPAIR_NAMES
from toolbench.engine.types import Finding, JsonObject, Turn
from toolbench.engine.wire_formats.chat_answer import decode_chat_answer
from toolbench.engine.wire_formats.parse_answer import MAX_SNIPPET_LENGTH

GOOD = '{"ops":[{"op":"set"}]}'


def read(body: bytes, *, with_tools: bool = True, **policy: Any) -> Turn:
    resolved = resolve_policy([("test", policy)]).policy
    setup = prepare_turns("m", resolved, system="", tools=TOOLS, options={}, seed=None)
    return parse_chat_turn(setup, decode_chat_answer(body), has_tools=with_tools)


def calling(*arguments: Any, finish: str = "tool_calls") -> bytes:
    calls = [build_call("state_patch", item, f"c{place}") for place, item in enumerate(arguments)]
    return build_answer(None, calls=calls, finish=finish)


@pytest.mark.parametrize("arguments", ["北京今天的天气怎么样", '{"ops": [{"op": "se', "[1]", "42", ["x"], True])
def test_bad_call_is_noted_with_mode_error_and_snippet_unchanged(arguments: Any) -> None:
    turn = read(calling(arguments))
    (error,) = turn.parse_errors
    assert (error.mode, error.call, error.repairs, error.snippet) == ("tool_use", 0, (), str(arguments))
    assert error.error
    assert turn.calls[0].arguments == arguments


@pytest.mark.parametrize("arguments", [GOOD, "", None, {"ops": []}, f"```json\n{GOOD}\n```", json.dumps(GOOD)])
def test_what_can_be_read_without_repairs_is_no_parse_error(arguments: Any) -> None:
    turn = read(calling(arguments), argument_repairs=list(REPAIR_NAMES))
    assert (turn.parse_errors, turn.changes) == ((), ())


def test_argument_repair_is_change_and_finding_and_keeps_original() -> None:
    turn = read(calling("{'ops': [{'op': 'set'},]}"), argument_repairs=list(REPAIR_NAMES))
    assert turn.calls_found[0].arguments == "{'ops': [{'op': 'set'},]}"
    assert turn.calls[0].arguments == '{"ops": [{"op": "set"}]}'
    path = "$.tool_calls[0].function.arguments"
    assert [(change.kind, change.name, change.path) for change in turn.changes] == [
        ("argument", "single_quotes", path),
        ("argument", "trailing_commas", path),
    ]
    assert (turn.changes[0].before, turn.changes[-1].after) != ("", "")
    assert [finding.code for finding in turn.findings] == ["arguments_repaired"]
    assert turn.parse_errors[0].is_repaired


def test_repairs_are_opt_in() -> None:
    turn = read(calling("{'ops': []}"))
    assert (turn.calls[0].arguments, turn.changes) == ("{'ops': []}", ())


@pytest.mark.parametrize(("written", "finish"), [('{"ops": [{"op": "se', "tool_calls"), ('{"ops": []', "length")])
def test_a_call_that_broke_off_is_told_as_truncated_and_left_to_be_refused(written: str, finish: str) -> None:
    turn = read(calling(written, finish=finish), argument_repairs=list(REPAIR_NAMES))
    assert (turn.calls[0].arguments, turn.changes) == (written, ())
    assert [finding.code for finding in turn.findings if finding.code.startswith("arguments")] == [
        "arguments_truncated"
    ]
    assert (turn.parse_errors[0].truncated, turn.parse_errors[0].is_repaired) == (True, False)


def test_one_bad_call_leaves_the_others_alone() -> None:
    turn = read(calling(GOOD, "坏的参数", GOOD))
    assert [call.arguments for call in turn.calls] == [GOOD, "坏的参数", GOOD]
    assert [error.call for error in turn.parse_errors] == [1]


def test_what_is_quoted_is_bounded() -> None:
    (error,) = read(calling("x" * 10_000)).parse_errors
    assert len(error.snippet) == MAX_SNIPPET_LENGTH


def test_arguments_over_the_size_limit_are_not_looked_at() -> None:
    assert read(calling("{'a': 1}"), argument_repairs=list(REPAIR_NAMES), max_tool_args_bytes=4).parse_errors == ()


def test_without_tools_nothing_is_noted_and_no_call_is_kept() -> None:
    turn = read(calling("坏"), with_tools=False)
    assert (turn.calls, turn.parse_errors, turn.stop_reason) == ((), (), "stop")


def test_a_text_that_could_not_be_read_is_a_parse_error_of_its_method() -> None:
    said = Finding("parse_error", "No call can be read; nothing was executed: {x", "$.content")
    (error,) = list_parse_errors(ParsedAnswer((), "{x", "text", (said,), has_unexecuted_call=True), "constrained")
    assert (error.mode, error.error, error.snippet, error.call) == ("constrained", "No call can be read", "{x", None)
    assert list_parse_errors(ParsedAnswer((), "Done.", "text"), "native") == ()


@pytest.mark.parametrize(
    ("method", "mode"), [("native", "tool_use"), ("text_json", "json_fallback"), ("template",) * 2]
)
def test_modes_are_named_as_paths_are(method: str, mode: str) -> None:
    assert get_mode_name(method) == mode


def test_calls_of_any_shape_are_gone_through() -> None:
    policy = resolve_policy([]).policy
    odd: list[JsonObject] = [{}, {"function": None}, {"function": {"arguments": "{"}}]
    assert [error.call for error in repair_calls(odd, policy, mode="tool_use", is_truncated=False).parse_errors] == [2]
