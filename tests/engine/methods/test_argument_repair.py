import json
from typing import Any

import pytest

from tests.engine.scripted_model import TOOLS, build_answer, build_call, build_plan, run_script
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


def parse_answer(body: bytes, *, with_tools: bool = True, **policy: Any) -> Turn:
    resolved = resolve_policy([("test", policy)]).policy
    setup = prepare_turns("m", resolved, system="", tools=TOOLS, options={}, seed=None)
    return parse_chat_turn(setup, decode_chat_answer(body), has_tools=with_tools)


def build_answer_with_calls(*arguments: Any, finish: str = "tool_calls") -> bytes:
    calls = [build_call("state_patch", item, f"c{index}") for index, item in enumerate(arguments)]
    return build_answer(None, calls=calls, finish=finish)


@pytest.mark.parametrize("arguments", ["北京今天的天气怎么样", '{"ops": [{"op": "se', "[1]", "42", ["x"], True])
def test_parse_error_of_unreadable_call_has_mode_error_and_snippet(arguments: Any) -> None:
    turn = parse_answer(build_answer_with_calls(arguments))
    (error,) = turn.parse_errors
    assert (error.mode, error.call, error.repairs, error.snippet) == ("tool_use", 0, (), str(arguments))
    assert error.error
    assert turn.calls[0].arguments == arguments


@pytest.mark.parametrize("arguments", [GOOD, "", None, {"ops": []}, f"```json\n{GOOD}\n```", json.dumps(GOOD)])
def test_arguments_readable_without_repairs_give_no_parse_error(arguments: Any) -> None:
    turn = parse_answer(build_answer_with_calls(arguments), argument_repairs=list(REPAIR_NAMES))
    assert (turn.parse_errors, turn.changes) == ((), ())


def test_argument_repair_is_change_and_finding_and_keeps_original() -> None:
    turn = parse_answer(build_answer_with_calls("{'ops': [{'op': 'set'},]}"), argument_repairs=list(REPAIR_NAMES))
    assert turn.calls_found[0].arguments == "{'ops': [{'op': 'set'},]}"
    assert turn.calls[0].arguments == '{"ops": [{"op": "set"}]}'
    path = "$.tool_calls[0].function.arguments"
    assert [(change.kind, change.name, change.path) for change in turn.changes] == [
        ("argument", "single_quotes", path),
        ("argument", "trailing_commas", path),
    ]
    assert [json.loads(excerpt) for excerpt in (turn.changes[0].before, turn.changes[-1].after)] == [
        "{'ops': [{'op': 'set'},]}",
        '{"ops": [{"op": "set"}]}',
    ]
    assert [finding.code for finding in turn.findings] == ["arguments_repaired"]
    assert turn.parse_errors[0].is_repaired


@pytest.mark.parametrize("repairs", [[], list(REPAIR_NAMES)])
def test_blanks_that_json_forbids_are_no_repair_in_standard_form(repairs: list[str]) -> None:
    arguments = f"\u00a0{GOOD}\u00a0"
    turn = parse_answer(build_answer_with_calls(arguments), wire_standard_only=True, argument_repairs=repairs)
    assert (turn.calls[0].arguments, turn.changes, turn.findings) == (arguments, (), ())
    assert [(error.is_repaired, error.repairs) for error in turn.parse_errors] == [(False, ())]


def test_argument_repairs_are_off_by_default() -> None:
    turn = parse_answer(build_answer_with_calls("{'ops': []}"))
    assert (turn.calls[0].arguments, turn.changes) == ("{'ops': []}", ())


@pytest.mark.parametrize(
    ("truncated_arguments", "finish"), [('{"ops": [{"op": "se', "tool_calls"), ('{"ops": []', "length")]
)
def test_truncated_call_is_reported_and_not_repaired(truncated_arguments: str, finish: str) -> None:
    turn = parse_answer(
        build_answer_with_calls(truncated_arguments, finish=finish), argument_repairs=list(REPAIR_NAMES)
    )
    assert (turn.calls[0].arguments, turn.changes) == (truncated_arguments, ())
    assert [finding.code for finding in turn.findings if finding.code.startswith("arguments")] == [
        "arguments_truncated"
    ]
    assert (turn.parse_errors[0].truncated, turn.parse_errors[0].is_repaired) == (True, False)


FILL_BLANK = "assistant_tool_calls_arguments_blank_to_empty_object"


@pytest.mark.parametrize("policy", [{}, {"tool_call_transforms": FILL_BLANK}, {"wire_standard_only": True}])
@pytest.mark.parametrize("arguments", ["", " ", None])
def test_call_cut_before_its_arguments_is_truncated_and_never_runs(arguments: Any, policy: dict[str, Any]) -> None:
    calls = [build_call("state_get", "{}", "c0"), build_call("state_get", arguments, "c1")]
    run = run_script(build_plan(**policy), [build_answer(None, calls=calls, finish="length"), build_answer()])
    answer = run.ended.turns[0].answer
    assert answer is not None
    assert [call.id for call in run.ran] == ["c0"]
    assert "cut the answer" in run.tool_envelopes()[1]["errors"][0]["message"]
    assert [(error.call, error.truncated) for error in answer.parse_errors] == [(1, True)]
    assert "arguments_missing" not in [finding.code for finding in answer.findings]
    assert [finding.message for finding in answer.findings if finding.code == "arguments_truncated"] == [
        "This call was not executed: the token limit cut the answer before its arguments."
    ]


@pytest.mark.parametrize(
    ("arguments", "finish"), [(("", "{}"), "length"), (("", ""), "tool_calls"), (("{}", None), "tool_calls")]
)
def test_blank_arguments_before_the_end_are_an_empty_object(arguments: tuple[Any, ...], finish: str) -> None:
    calls = [build_call("state_get", item, f"c{index}") for index, item in enumerate(arguments)]
    run = run_script(build_plan(), [build_answer(None, calls=calls, finish=finish), build_answer()])
    assert [call.arguments for call in run.ran] == [{}, {}]


def test_parse_error_of_one_call_leaves_others_unchanged() -> None:
    turn = parse_answer(build_answer_with_calls(GOOD, "坏的参数", GOOD))
    assert [call.arguments for call in turn.calls] == [GOOD, "坏的参数", GOOD]
    assert [error.call for error in turn.parse_errors] == [1]


def test_parse_error_snippet_has_max_length() -> None:
    (error,) = parse_answer(build_answer_with_calls("x" * 10_000)).parse_errors
    assert len(error.snippet) == MAX_SNIPPET_LENGTH


def test_arguments_over_the_size_limit_give_no_parse_error() -> None:
    assert (
        parse_answer(
            build_answer_with_calls("{'a': 1}"), argument_repairs=list(REPAIR_NAMES), max_tool_args_bytes=4
        ).parse_errors
        == ()
    )


def test_calls_without_tools_give_no_parse_error() -> None:
    turn = parse_answer(build_answer_with_calls("坏"), with_tools=False)
    assert (turn.calls, turn.parse_errors, turn.stop_reason) == ((), (), "stop")


def test_list_parse_errors_reads_finding_of_unreadable_text() -> None:
    finding = Finding("parse_error", "No call can be read; nothing was executed: {x", "$.content")
    (error,) = list_parse_errors(ParsedAnswer((), "{x", "text", (finding,), has_unexecuted_call=True), "constrained")
    assert (error.mode, error.error, error.snippet, error.call) == ("constrained", "No call can be read", "{x", None)
    assert list_parse_errors(ParsedAnswer((), "Done.", "text"), "native") == ()


@pytest.mark.parametrize(
    ("method", "mode"), [("native", "tool_use"), ("text_json", "json_fallback"), ("template",) * 2]
)
def test_get_mode_name_equals_stored_path(method: str, mode: str) -> None:
    assert get_mode_name(method) == mode


def test_repair_calls_accepts_malformed_calls() -> None:
    policy = resolve_policy([]).policy
    malformed_calls: list[JsonObject] = [{}, {"function": None}, {"function": {"arguments": "{"}}]
    assert [
        error.call for error in repair_calls(malformed_calls, policy, mode="tool_use", is_truncated=False).parse_errors
    ] == [2]
