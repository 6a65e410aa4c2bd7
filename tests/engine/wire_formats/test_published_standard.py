"""Tests that strategy wire_standard reads only calls in standard form and raw reads more."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.scripted_model import (
    PATCH_TOOL,
    LoopRun,
    build_answer,
    build_call,
    build_calling_answer,
    build_plan,
    run_script,
)
from toolbench.engine.events import EndReason
from toolbench.engine.policy.presets import PatchSet, build_layers
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.repairs import REPAIR_NAMES as REPAIRS
from toolbench.engine.transforms import list_names
from toolbench.engine.types import JsonObject

LETTERS = st.text(st.sampled_from("abcäöß 0123"), max_size=8)
OPS = st.lists(st.fixed_dictionaries({"op": LETTERS}), max_size=3)
ARGUMENTS = st.fixed_dictionaries({"ops": OPS})


def render_function_call(arguments: JsonObject) -> bytes:
    return build_answer("", function_call={"name": PATCH_TOOL.name, "arguments": json.dumps(arguments)})


def render_single_object(arguments: JsonObject) -> bytes:
    return build_answer("", calls=build_call(PATCH_TOOL.name, json.dumps(arguments)))


def render_object_arguments(arguments: JsonObject) -> bytes:
    return build_calling_answer(build_call(PATCH_TOOL.name, arguments))


def render_tags(arguments: JsonObject) -> bytes:
    return build_answer(f"<tool_call>{json.dumps({'name': PATCH_TOOL.name, 'arguments': arguments})}</tool_call>")


def render_tags_in_reasoning(arguments: JsonObject) -> bytes:
    text = f"<tool_call>{json.dumps({'name': PATCH_TOOL.name, 'arguments': arguments})}</tool_call>"
    return build_answer("", reasoning_content=text)


def render_blank_arguments(_: JsonObject) -> bytes:
    return build_calling_answer(build_call("state_get", " "))


def render_parallel_use(arguments: JsonObject) -> bytes:
    tool_use = {"recipient_name": f"functions.{PATCH_TOOL.name}", "parameters": arguments}
    return build_calling_answer(build_call("multi_tool_use.parallel", json.dumps({"tool_uses": [tool_use]})))


def render_leaked_token(arguments: JsonObject) -> bytes:
    return build_calling_answer(build_call(f"{PATCH_TOOL.name}<|channel|>commentary", json.dumps(arguments)))


def render_double_encoding(arguments: JsonObject) -> bytes:
    return build_calling_answer(build_call(PATCH_TOOL.name, json.dumps(json.dumps(arguments))))


# transform: (its kind, the shape that it repairs, whether raw reads that shape without it)
HEALED: dict[str, tuple[str, Any, bool]] = {
    "assistant_function_call_to_tool_calls": ("response_transforms", render_function_call, False),
    "assistant_tool_calls_object_to_array": ("response_transforms", render_single_object, True),
    "assistant_tool_calls_arguments_json_string_if_hash": ("response_transforms", render_object_arguments, True),
    "assistant_content_tool_call_tags_to_tool_calls": ("response_transforms", render_tags, False),
    "tool_calls_from_text": ("response_transforms", render_tags, False),
    "tool_calls_from_reasoning": ("response_transforms", render_tags_in_reasoning, False),
    "assistant_tool_calls_arguments_blank_to_empty_object": ("tool_call_transforms", render_blank_arguments, True),
    "multi_tool_use_parallel_to_calls": ("tool_call_transforms", render_parallel_use, False),
    "tool_call_names_cleaned": ("tool_call_transforms", render_leaked_token, False),
    "nested_encoding": ("argument_repairs", render_double_encoding, True),
}


def run_strategy(strategy: str, answer: bytes, **patch: Any) -> LoopRun:
    layers = build_layers(strategy, patches=PatchSet(run={"tool_use_mode": "enforced", "max_turns": 2, **patch}))
    return run_script(replace(build_plan(), policy=resolve_policy(layers).policy), [answer, build_answer("Done.")])


def test_every_response_and_call_transform_has_a_shape_here() -> None:
    assert {*list_names("response"), *list_names("tool_call")} <= HEALED.keys()
    assert HEALED.keys() - {*list_names("response"), *list_names("tool_call")} <= {*REPAIRS}


@pytest.mark.parametrize("transform", HEALED)
@given(arguments=ARGUMENTS)
@settings(max_examples=15)
def test_wire_standard_fails_on_shape_that_its_transform_repairs(transform: str, arguments: JsonObject) -> None:
    kind, render_shape, raw_reads_it = HEALED[transform]

    without_transform = run_strategy("wire_standard", render_shape(arguments))
    with_transform = run_strategy("wire_standard", render_shape(arguments), **{kind: [transform]})
    raw = run_strategy("raw", render_shape(arguments))

    assert not without_transform.ran
    assert without_transform.ended.end in (EndReason.NO_TOOL_CALLS, EndReason.TOOL_ERROR)
    assert len(with_transform.ran) == 1
    assert with_transform.ended.end is EndReason.FINAL
    assert bool(raw.ran) is raw_reads_it


@pytest.mark.parametrize(
    "calls",
    [
        {"0": build_call()},
        ["state_get"],
        [{**build_call(), "type": "custom"}],
        [{"id": "c1", "type": "function"}],
        [build_call(" state_get")],
        [build_call("")],
        [build_call(call_id="")],
        [build_call(call_id=None)],
        [build_call(call_id=7)],
        [build_call(arguments={})],
        [build_call(arguments=None)],
        [build_call(arguments="")],
        [build_call(arguments='"{}"')],
        [build_call(arguments="```json\n{}\n```")],
        [build_call(arguments="[]")],
        [build_call("state.get")],
    ],
)
def test_wire_standard_executes_no_call_of_another_shape(calls: Any) -> None:
    run = run_strategy("wire_standard", build_answer("", calls=calls))

    turn = run.ended.turns[0]
    assert not run.ran
    assert turn.answer is not None
    assert turn.answer.parse_errors or turn.results[0].envelope.errors[0]["code"] == "TOOL_NOT_ALLOWED"


def test_wire_standard_executes_only_calls_in_standard_form() -> None:
    run = run_strategy(
        "wire_standard",
        build_calling_answer(
            build_call(call_id=""), build_call(call_id="c2"), {**build_call(call_id="c3"), "type": None}
        ),
    )

    (first, _) = run.ended.turns
    assert [call.id for call in run.ran] == ["c2", "c3"]
    assert first.answer is not None
    assert [(finding.code, finding.path) for finding in first.answer.findings if finding.code == "parse_error"] == [
        ("parse_error", "$.choices[0].message.tool_calls[0]")
    ]
    assert not first.answer.has_unexecuted_call


@given(arguments=ARGUMENTS, blanks=st.sampled_from(["", " ", "\n\t"]))
def test_wire_standard_executes_every_call_in_standard_form(arguments: JsonObject, blanks: str) -> None:
    text = f"{blanks}{json.dumps(arguments)}{blanks}"

    run = run_strategy("wire_standard", build_calling_answer(build_call(PATCH_TOOL.name, text)))

    assert [call.arguments for call in run.ran] == [arguments]
    assert run.ended.end is EndReason.FINAL


def test_wire_standard_sends_same_requests_as_raw() -> None:
    answer = build_calling_answer(build_call())
    assert run_strategy("wire_standard", answer).bodies == run_strategy("raw", answer).bodies
    assert build_layers("raw") == ()
