"""The method template against llama.cpp: our prompt goes in as it is, and what comes back is read in its format."""

from dataclasses import replace

import pytest

from tests.providers.driven_trials import OSLO_CALL, TrialNotes, build_plan, drive_trial
from toolbench.engine.events import EndReason
from toolbench.engine.types import Message
from toolbench.providers.endpoint import Endpoint, Timeouts
from toolbench.providers.ready_line import ReadyLine

pytestmark = pytest.mark.local_model


def example(city: str) -> list[Message]:
    call = {"id": city, "type": "function", "function": {"name": OSLO_CALL[0], "arguments": f'{{"city": "{city}"}}'}}
    return [
        {"role": "user", "content": f"Weather in {city}?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": city, "content": f'{{"ok":true,"data":{{"city":"{city}"}}}}'},
        {"role": "assistant", "content": f"It is sunny in {city}."},
    ]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt_endpoint", ["completions", "llama"])
def test_a_prompt_of_ours_is_completed_and_read(own: ReadyLine, prompt_endpoint: str, stream: bool) -> None:
    given = build_plan(
        method="template",
        prompt_endpoint=prompt_endpoint,
        max_turns=2,
        llm_options_defaults={"max_tokens": 64, "temperature": 0},
    )
    notes = TrialNotes()
    endpoint = Endpoint(own.url, own.model, key=own.key, sends_seed=True, timeouts=Timeouts(read=120))
    ended = drive_trial(
        endpoint, notes, replace(given, history=(*example("Rome"), *example("Lima")), is_streamed=stream, seed=1)
    )
    assert ended.end in (EndReason.FINAL, EndReason.MAX_TURNS_EXCEEDED)
    assert set(notes.codes) == {""}
    first = ended.turns[0].answer
    assert first is not None
    assert first.text or first.calls_found
    assert "<|im_end|>" not in first.text
    assert first.usage is not None
    assert first.usage.input_tokens
