"""Tests of the method template with llama.cpp: the prompt is completed, and the answer is read in its text format."""

from dataclasses import replace

import pytest

from tests.providers.driven_trials import OSLO_CALL, TrialNotes, build_plan, drive_trial
from toolbench.engine.events import EndReason
from toolbench.engine.types import Message
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.ready_line import ReadyLine

pytestmark = pytest.mark.local_model


def build_example(city: str) -> list[Message]:
    call = {"id": city, "type": "function", "function": {"name": OSLO_CALL[0], "arguments": f'{{"city": "{city}"}}'}}
    return [
        {"role": "user", "content": f"Weather in {city}?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": city, "content": f'{{"ok":true,"data":{{"city":"{city}"}}}}'},
        {"role": "assistant", "content": f"It is sunny in {city}."},
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt_endpoint", ["completions", "llama"])
def test_method_template_prompt_is_completed_and_read(
    own_server: ReadyLine, prompt_endpoint: str, stream: bool
) -> None:
    plan = build_plan(
        method="template",
        prompt_endpoint=prompt_endpoint,
        max_turns=2,
        llm_options_defaults={"max_tokens": 64, "temperature": 0},
    )
    notes = TrialNotes()
    endpoint = Endpoint(
        own_server.url, own_server.model, key=own_server.key, sends_seed=True, timeouts=Timeouts(read=120)
    )
    loop_result = drive_trial(
        endpoint,
        notes,
        replace(plan, history=(*build_example("Rome"), *build_example("Lima")), is_streamed=stream, seed=1),
    )
    assert loop_result.end in (EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED)
    assert set(notes.codes) == {""}
    first = loop_result.turns[0].answer
    assert first is not None
    assert first.text or first.calls_found
    assert "<|im_end|>" not in first.text
    assert first.usage is not None
    assert first.usage.input_tokens
