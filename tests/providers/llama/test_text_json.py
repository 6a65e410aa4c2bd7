"""Tests of the method text_json with the local model, which has no tool use: no parse error ends a turn.

They assert form, never how often the model is right.
"""

from dataclasses import replace

import pytest

from tests.providers.driven_trials import TrialNotes, build_plan, drive_trial
from toolbench.engine.events import EndReason, LoopResult
from toolbench.engine.repairs import REPAIR_NAMES
from toolbench.engine.types import JsonObject
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.ready_line import ReadyLine

pytestmark = pytest.mark.local_model

SEEDS = range(4)
EXAMPLE = (
    {"role": "user", "content": "Weather in Rome?"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "e1", "function": {"name": "get_weather", "arguments": '{"city": "Rome"}'}}],
    },
    {"role": "tool", "tool_call_id": "e1", "content": '{"city": "Rome", "sky": "clear"}'},
    {"role": "assistant", "content": "It is clear in Rome."},
)


def try_seed(server: ReadyLine, seed: int, options: JsonObject) -> tuple[LoopResult, TrialNotes]:
    notes = TrialNotes()
    plan = build_plan(method="text_json", repair_request=True, argument_repairs=list(REPAIR_NAMES), max_turns=4)
    endpoint = Endpoint(base_url=server.url, model=server.model, key=server.key)
    return drive_trial(
        endpoint, notes, replace(plan, history=EXAMPLE, model=server.model, options=options, seed=seed)
    ), notes


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": 0.7, "max_tokens": 64},
        {"temperature": 0.7, "max_tokens": 16},
        {"temperature": 2.0, "max_tokens": 64},
    ],
    ids=["usual", "truncated", "random"],
)
def test_text_json_parse_error_ends_no_turn_and_unexecuted_tool_is_noted(
    own_server: ReadyLine, options: JsonObject
) -> None:
    for seed in SEEDS:
        loop_result, notes = try_seed(own_server, seed, options)
        assert loop_result.end in (EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED, EndReason.LENGTH)
        assert loop_result.reprompt_count <= 1
        assert not any(b'"tools"' in step.request_body for step in notes.exchanges)
        answers = [record.answer for record in loop_result.turns if record.answer]
        assert len(answers) == len(loop_result.turns)
        assert loop_result.end != EndReason.LENGTH or answers[-1].finish_reason == "length"
        assert all(answer.notice.startswith("Tool not executed: ") for answer in answers if answer.has_unexecuted_call)
        assert all(answer.parse_errors or answer.calls for answer in answers if answer.method_used == "json_fallback")
