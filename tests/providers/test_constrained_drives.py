"""Constrained trials on the real loop and real sockets, whole and streamed."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.providers.driven_trials import WEATHER_TOOL, TrialNotes, build_plan, drive_trial
from tests.providers.test_streamed_drives import part, sse
from toolbench.engine.constraints.schema_support import CONSTRAINTS, TOOL_CONSTRAINTS
from toolbench.engine.errors import PlanError
from toolbench.engine.events import EndReason
from toolbench.engine.loop.run import LoopPlan
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.providers.driver.step_records import ToolStep
from toolbench.providers.scripted_server import ScriptedReply, ScriptedServer, text_reply, tool_call_reply

CALL = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
FINAL = '{"final": "Rain."}'


def constrained(constraint: str, *, stream: bool = False, **policy: Any) -> LoopPlan:
    return replace(build_plan(method="constrained", constraint=constraint, **policy), is_streamed=stream)


def streamed(text: str) -> ScriptedReply:
    """A text in pieces of five characters."""
    pieces = [part({"content": text[at : at + 5]}) for at in range(0, len(text), 5)]
    return sse(*pieces, part({}, "stop"))


def worded(constraint: str, text: str) -> str:
    return json.dumps({"answer": json.loads(text)}) if constraint == "strict" else text


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("constraint", [name for name in CONSTRAINTS if name not in TOOL_CONSTRAINTS])
def test_a_constrained_trial_runs_to_its_end(provider: ScriptedServer, constraint: str, stream: bool) -> None:
    given = [worded(constraint, text) for text in (CALL, FINAL)]
    provider.set_script(*(streamed(text) if stream else text_reply(text) for text in given))
    notes = TrialNotes()
    ended = drive_trial(provider.endpoint(), notes, constrained(constraint, stream=stream))
    assert (ended.end, ended.final_text) == (EndReason.FINAL, "Rain.")
    for seen in provider.seen:
        sent = seen.json()
        assert {"response_format", "structured_outputs", "output_config", "grammar", "ebnf"} & set(sent)
        assert sent.get("stream", False) is stream
        assert "tools" not in sent
    if stream:
        heard = "".join(event.data.get("text", "") for event in notes.events if event.type == "llm_delta")
        assert heard == "".join(given)


def test_strict_tools_go_and_come_in_their_own_field(provider: ScriptedServer) -> None:
    provider.set_script(tool_call_reply(("get_weather", {"city": "Oslo"})), text_reply("Rain."))
    ended = drive_trial(provider.endpoint(), TrialNotes(), constrained("strict_tools"))
    assert (ended.end, ended.final_text) == (EndReason.FINAL, "Rain.")
    assert provider.seen[0].json()["tools"][0]["function"]["strict"] is True


@pytest.mark.parametrize("stream", [False, True])
def test_what_comes_back_is_checked_again_whoever_promised_what(provider: ScriptedServer, stream: bool) -> None:
    broken = '{"name": "get_weather", "arguments": {"city": 7}}'
    provider.set_script(*(streamed(text) if stream else text_reply(text) for text in (broken, FINAL)))
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, constrained("gbnf", stream=stream))
    (tool,) = [step for step in notes.steps if isinstance(step, ToolStep)]
    assert [error["code"] for error in tool.result.envelope.errors] == ["ARGUMENT_ERROR"]
    assert [error.path for error in tool.result.schema_errors] == ["$.city"]


def test_several_calls_in_one_answer_need_parallel_calls_in_run(provider: ScriptedServer) -> None:
    provider.set_script(text_reply(f'{{"calls": [{CALL}, {CALL.replace("Oslo", "Rome")}]}}'), text_reply(FINAL))
    notes = TrialNotes()
    ended = drive_trial(
        provider.endpoint(), notes, constrained("gbnf", request_overrides={"parallel_tool_calls": True})
    )
    assert ended.end is EndReason.FINAL
    assert [step.result.call.id for step in notes.steps if isinstance(step, ToolStep)] == [
        "constrained_call_1",
        "constrained_call_2",
    ]


def test_what_the_endpoint_would_not_hold_stands_at_every_request(provider: ScriptedServer) -> None:
    provider.set_script(text_reply(CALL), text_reply(FINAL))
    city = {"type": "string", "not": {"const": "Rome"}}
    tool = replace(WEATHER_TOOL, parameters={"type": "object", "properties": {"city": city}})
    notes = TrialNotes()
    drive_trial(provider.endpoint(), notes, replace(constrained("gbnf"), tools=ToolRegistry((tool,))))
    for exchange in notes.exchanges:
        (change,) = exchange.request.changes
        assert (change.kind, change.name, change.after) == ("tool", "constraint_gbnf", "not held")
        assert (change.path, change.before) == ("$[0].parameters.properties.city.not", 'not: {"const":"Rome"}')


@pytest.mark.parametrize(
    "schema", [{"$ref": "http://elsewhere.invalid/x"}, {"$ref": "#/$defs/none"}, {"type": "string", "pattern": "(["}]
)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_unusable_schema_stops_run_before_first_request(
    provider: ScriptedServer, constraint: str, schema: dict[str, Any]
) -> None:
    tool = ToolDefinition("f", "F.", {"type": "object", "properties": {"a": schema}})
    broken = replace(constrained(constraint, validate_arguments=False), tools=ToolRegistry((tool,)))
    with pytest.raises(PlanError, match="tool f"):
        drive_trial(provider.endpoint(), TrialNotes(), broken)
    assert provider.seen == []
