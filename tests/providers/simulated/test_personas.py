import asyncio
from typing import Any

import aiohttp
import pytest

from tests.providers.simulated.conftest import Serving
from tests.providers.simulated.rate_check import is_near_published_rate
from tests.providers.simulated.state_tasks import (
    HttpAnswer,
    build_control_request,
    build_state_request,
    play_task,
    post_request,
)
from toolbench.providers.simulated.answer import ALL_FAILURES, SHAPE_FAULTS, TOOLS_DROPPED
from toolbench.providers.simulated.faults.behaviour import MOVE_FAULTS
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.stream_events import LINE_FAULTS, STREAM_FAULTS

REQUESTS = 500
TRIALS = 250
AT_ONCE = 40
PLACES = {"first", "middle", "last", "final", "control", "tight", "any"}
SILENT = {"hangs", "drops-connection"}


def after_the_first_call(body: dict[str, Any]) -> dict[str, Any]:
    """The request as it is when the state has been read and the change is next."""
    call = {"id": "c1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}
    report = '{"ok": true, "tool_name": "state_get", "data": {}}'
    turn = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": report},
    ]
    return body | {"messages": [*body["messages"], *turn]}


def sometimes(persona: Persona) -> bool:
    return 0 < persona.rate < 1 and persona.slug not in SILENT and persona.drift not in STREAM_FAULTS


def meaning(answer: HttpAnswer) -> object:
    """An answer without what differs between any two: ids, model, usage."""
    try:
        choice = answer.json()["choices"][0]
    except (ValueError, RecursionError, KeyError, TypeError):
        return answer.status, answer.body
    calls = choice["message"].pop("tool_calls", None)
    functions = [call["function"] for call in calls] if isinstance(calls, list) else calls
    return choice["message"], functions, choice["finish_reason"]


def test_every_persona_has_a_drift_that_exists_and_places_that_exist() -> None:
    known = {"", TOOLS_DROPPED, *ALL_FAILURES, *MOVE_FAULTS, *SHAPE_FAULTS, *STREAM_FAULTS, *LINE_FAULTS}
    for persona in load_personas().values():
        assert persona.drift in known
        assert set(persona.places) <= PLACES
        assert bool(persona.drift) == bool(persona.places) == (persona.rate > 0)


def test_every_drift_is_played_by_a_persona() -> None:
    played = {persona.drift for persona in load_personas().values()}
    assert {TOOLS_DROPPED, *ALL_FAILURES, *MOVE_FAULTS, *SHAPE_FAULTS, *STREAM_FAULTS, *LINE_FAULTS} <= played


@pytest.mark.parametrize("slug", [p.slug for p in load_personas().values() if sometimes(p)])
def test_a_persona_drifts_at_its_published_rate(serving: Serving, slug: str) -> None:
    persona = load_personas()[slug]

    async def journey() -> int:
        gate = asyncio.Semaphore(AT_ONCE)
        async with serving() as client:
            right = meaning(await post_request(client, after_the_first_call(build_state_request("perfect", 0))))

            async def drifted(seed: int) -> bool:
                async with gate:
                    return (
                        meaning(await post_request(client, after_the_first_call(build_state_request(slug, seed))))
                        != right
                    )

            return sum(await asyncio.gather(*(drifted(seed) for seed in range(REQUESTS))))

    assert is_near_published_rate(asyncio.run(journey()), REQUESTS, persona.true_rates["drift"])


@pytest.mark.parametrize("slug", ["reliable-95", "reliable-90", "reliable-70", "done-too-early", "perfect"])
def test_a_persona_misses_the_task_at_its_published_rate(serving: Serving, slug: str) -> None:
    rate = load_personas()[slug].true_rates["tools"]["raw"]

    async def right(client: aiohttp.ClientSession, seed: int, gate: asyncio.Semaphore) -> bool:
        async with gate:
            return (await play_task(client, build_state_request(slug, seed))).patched == "bar"

    async def journey() -> int:
        gate = asyncio.Semaphore(AT_ONCE)
        async with serving() as client:
            return sum(await asyncio.gather(*(right(client, seed, gate) for seed in range(TRIALS))))

    assert is_near_published_rate(asyncio.run(journey()), TRIALS, rate)


@pytest.mark.parametrize("slug", ["broken-json-once", "wrong-types", "several-at-once", "whole-but-length", "slow"])
def test_a_persona_that_recovers_does_the_task_in_the_end(serving: Serving, slug: str) -> None:
    async def journey() -> list[object]:
        async with serving() as client:
            return [(await play_task(client, build_state_request(slug, seed))).patched for seed in range(20)]

    assert set(asyncio.run(journey())) == {"bar"}


@pytest.mark.parametrize("slug", ["rate-limited", "flaky-503", "error-in-200"])
def test_passing_refusal_is_served_at_second_try_and_repeats_with_seed(serving: Serving, slug: str) -> None:
    async def tries(client: aiohttp.ClientSession, seed: int) -> list[bool]:
        return ["drift=" in (await post_request(client, build_state_request(slug, seed))).label for _ in range(4)]

    async def journey() -> list[list[bool]]:
        async with serving() as client:
            return [await tries(client, seed) for seed in range(30)]

    seen = asyncio.run(journey())
    assert [True, False, True, False] in seen
    assert all(one in ([True, False, True, False], [False] * 4) for one in seen)


def test_a_control_is_answered_with_done_by_all_but_those_that_drift_there(serving: Serving) -> None:
    async def journey() -> dict[str, str]:
        async with serving() as client:
            slugs = [p.slug for p in load_personas().values() if not set(p.places) & {"any", "control", "tight"}]
            answers = {slug: await post_request(client, build_control_request(slug, 5)) for slug in slugs}
        return {slug: answer.message["content"] for slug, answer in answers.items()}

    assert set(asyncio.run(journey()).values()) == {"Done."}
