"""Tests of constrained trials on the real loop and real sockets, whole and streamed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.providers.driven_trials import WEATHER_TOOL, TrialNotes, build_plan, drive_trial
from tests.providers.test_streamed_drives import build_chunk, build_stream_reply
from toolbench.engine.constraints.schema_support import CONSTRAINTS, TOOL_CONSTRAINTS
from toolbench.engine.errors import PlanError
from toolbench.engine.events import EndReason
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.providers.driver.step_records import ToolStep
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, text_reply, tool_call_reply

CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
FINAL = '{"final": "Rain."}'


def build_constrained_plan(constraint: str, *, stream: bool = False, **policy: Any) -> LoopPlan:
    return replace(build_plan(method="constrained", constraint=constraint, **policy), is_streamed=stream)


def stream_text(text: str) -> ScriptedReply:
    """Return a text that is streamed in chunks of five characters."""
    chunks = [build_chunk({"content": text[start : start + 5]}) for start in range(0, len(text), 5)]
    return build_stream_reply(*chunks, build_chunk({}, "stop"))


def wrap_text(constraint: str, text: str) -> str:
    return json.dumps({"answer": json.loads(text)}) if constraint == "strict" else text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("constraint", [name for name in CONSTRAINTS if name not in TOOL_CONSTRAINTS])
def test_drive_constrained_trial_runs_to_its_end(provider: ScriptedServer, constraint: str, stream: bool) -> None:
    texts = [wrap_text(constraint, text) for text in (CALL, FINAL)]
    provider.set_script(*(stream_text(text) if stream else text_reply(text) for text in texts))
    notes = TrialNotes()
    loop_result = drive_trial(provider.endpoint(), notes, build_constrained_plan(constraint, stream=stream))
    assert (loop_result.end, loop_result.final_text) == (EndReason.FINAL, "Rain.")
    for seen in provider.seen:
        sent = seen.json()
        assert {"response_format", "structured_outputs", "output_config", "grammar", "ebnf"} & set(sent)
        assert sent.get("stream", False) is stream
        assert "tools" not in sent
    if stream:
        streamed = "".join(event.data.get("text", "") for event in notes.events if event.type == "llm_delta")
        assert streamed == "".join(texts)


def test_drive_strict_tools_are_sent_and_read_natively(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(("get_weather", {"city": "Oslo"})), text_reply("Rain."))
    loop_result = drive_trial(provider.endpoint(), TrialNotes(), build_constrained_plan("strict_tools"))
    assert (loop_result.end, loop_result.final_text) == (EndReason.FINAL, "Rain.")
    assert provider.seen[0].json()["tools"][0]["function"]["strict"] is True


@pytest.mark.parametrize("stream", [False, True])
def test_drive_constrained_arguments_are_validated_again(provider: ScriptedServer, stream: bool) -> None:
    broken = '{"name": "get_weather", "arguments": {"city": 7}}'
    provider.set_script(*(stream_text(text) if stream else text_reply(text) for text in (broken, FINAL)))
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, build_constrained_plan("gbnf", stream=stream))
    (tool,) = [step for step in notes.steps if isinstance(step, ToolStep)]
    assert [error["code"] for error in tool.result.envelope.errors] == ["ARGUMENT_ERROR"]
    assert [error.path for error in tool.result.schema_errors] == ["$.city"]


def test_drive_constrained_answer_with_two_calls_runs_both(provider: ScriptedServer) -> None:
    provider.set_script(text_reply(f'{{"calls": [{CALL}, {CALL.replace("Oslo", "Rome")}]}}'), text_reply(FINAL))
    notes = TrialNotes()
    loop_result = drive_trial(
        provider.endpoint(), notes, build_constrained_plan("gbnf", request_overrides={"parallel_tool_calls": True})
    )
    assert loop_result.end is EndReason.FINAL
    assert [step.result.call.id for step in notes.steps if isinstance(step, ToolStep)] == [
        "constrained_call_1",
        "constrained_call_2",
    ]


def test_drive_constrained_requests_record_unenforced_keywords(provider: ScriptedServer) -> None:
    provider.set_script(text_reply(CALL), text_reply(FINAL))
    city = {"type": "string", "not": {"const": "Rome"}}
    tool = replace(WEATHER_TOOL, parameters={"type": "object", "properties": {"city": city}})
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, replace(build_constrained_plan("gbnf"), tools=ToolRegistry((tool,))))
    for exchange in notes.exchanges:
        (change,) = exchange.request.changes
        assert (change.kind, change.name, change.after) == ("tool", "constraint_gbnf", "not enforced")
        assert (change.path, change.before) == ("$[0].parameters.properties.city.not", 'not: {"const":"Rome"}')


@pytest.mark.parametrize(
    "schema", [{"$ref": "http://elsewhere.invalid/x"}, {"$ref": "#/$defs/none"}, {"type": "string", "pattern": "(["}]
)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_drive_unusable_schema_raises_before_the_first_request(
    provider: ScriptedServer, constraint: str, schema: dict[str, Any]
) -> None:
    tool = ToolDefinition("f", "F.", {"type": "object", "properties": {"a": schema}})
    broken = replace(build_constrained_plan(constraint, validate_arguments=False), tools=ToolRegistry((tool,)))
    with pytest.raises(PlanError, match="tool f"):
        drive_trial(provider.endpoint(), TrialNotes(), broken)
    assert provider.seen == []
