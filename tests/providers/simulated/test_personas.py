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
    post_request,
    run_task,
)
from toolbench.providers.simulated.answer import ALL_FAILURES, SHAPE_FAULTS, TOOLS_DROPPED
from toolbench.providers.simulated.faults.behaviour import MOVE_FAULTS
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.stream_events import LINE_FAULTS, STREAM_FAULTS

REQUESTS = 500
TRIALS = 250
CONCURRENCY = 40
PLACES = {"first", "middle", "last", "final", "control", "tight", "any"}
NEVER_ANSWERS = {"hangs", "drops-connection"}


def add_first_call(body: dict[str, Any]) -> dict[str, Any]:
    """Return the request after the state has been read, when the change is next."""
    call = {"id": "c1", "type": "function", "function": {"name": "state_get", "arguments": "{}"}}
    report = '{"ok": true, "tool_name": "state_get", "data": {}}'
    turn = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": report},
    ]
    return body | {"messages": [*body["messages"], *turn]}


def has_random_fault(persona: Persona) -> bool:
    return 0 < persona.rate < 1 and persona.slug not in NEVER_ANSWERS and persona.drift not in STREAM_FAULTS


def read_content(answer: HttpAnswer) -> object:
    """Return the answer without what differs between any two: ids, model, usage."""
    try:
        choice = answer.json()["choices"][0]
    except (ValueError, RecursionError, KeyError, TypeError):
        return answer.status, answer.body
    calls = choice["message"].pop("tool_calls", None)
    functions = [call["function"] for call in calls] if isinstance(calls, list) else calls
    return choice["message"], functions, choice["finish_reason"]


def test_load_personas_have_known_faults_and_places() -> None:
    known = {"", TOOLS_DROPPED, *ALL_FAILURES, *MOVE_FAULTS, *SHAPE_FAULTS, *STREAM_FAULTS, *LINE_FAULTS}
    for persona in load_personas().values():
        assert persona.drift in known
        assert set(persona.places) <= PLACES
        assert bool(persona.drift) == bool(persona.places) == (persona.rate > 0)


def test_load_personas_use_every_fault() -> None:
    faults = {persona.drift for persona in load_personas().values()}
    assert {TOOLS_DROPPED, *ALL_FAILURES, *MOVE_FAULTS, *SHAPE_FAULTS, *STREAM_FAULTS, *LINE_FAULTS} <= faults


@pytest.mark.parametrize("slug", [p.slug for p in load_personas().values() if has_random_fault(p)])
def test_persona_shows_its_fault_at_the_published_rate(serving: Serving, slug: str) -> None:
    persona = load_personas()[slug]

    async def run_requests() -> int:
        semaphore = asyncio.Semaphore(CONCURRENCY)
        async with serving() as client:
            right = read_content(await post_request(client, add_first_call(build_state_request("perfect", 0))))

            async def has_fault(seed: int) -> bool:
                async with semaphore:
                    return (
                        read_content(await post_request(client, add_first_call(build_state_request(slug, seed))))
                        != right
                    )

            return sum(await asyncio.gather(*(has_fault(seed) for seed in range(REQUESTS))))

    assert is_near_published_rate(asyncio.run(run_requests()), REQUESTS, persona.true_rates["drift"])


@pytest.mark.parametrize("slug", ["reliable-95", "reliable-90", "reliable-70", "done-too-early", "perfect"])
def test_persona_completes_the_task_at_its_published_rate(serving: Serving, slug: str) -> None:
    rate = load_personas()[slug].true_rates["tools"]["raw"]

    async def right(client: aiohttp.ClientSession, seed: int, semaphore: asyncio.Semaphore) -> bool:
        async with semaphore:
            return (await run_task(client, build_state_request(slug, seed))).patched == "bar"

    async def run_requests() -> int:
        semaphore = asyncio.Semaphore(CONCURRENCY)
        async with serving() as client:
            return sum(await asyncio.gather(*(right(client, seed, semaphore) for seed in range(TRIALS))))

    assert is_near_published_rate(asyncio.run(run_requests()), TRIALS, rate)


@pytest.mark.parametrize("slug", ["broken-json-once", "wrong-types", "several-at-once", "whole-but-length", "slow"])
def test_persona_that_recovers_completes_the_task(serving: Serving, slug: str) -> None:
    async def run_requests() -> list[object]:
        async with serving() as client:
            return [(await run_task(client, build_state_request(slug, seed))).patched for seed in range(20)]

    assert set(asyncio.run(run_requests())) == {"bar"}


@pytest.mark.parametrize("slug", ["rate-limited", "flaky-503", "error-in-200"])
def test_persona_transient_refusal_is_served_at_the_second_try(serving: Serving, slug: str) -> None:
    async def tries(client: aiohttp.ClientSession, seed: int) -> list[bool]:
        return ["drift=" in (await post_request(client, build_state_request(slug, seed))).label for _ in range(4)]

    async def run_requests() -> list[list[bool]]:
        async with serving() as client:
            return [await tries(client, seed) for seed in range(30)]

    seen = asyncio.run(run_requests())
    assert [True, False, True, False] in seen
    assert all(labels in ([True, False, True, False], [False] * 4) for labels in seen)


def test_persona_without_fault_in_controls_answers_done(serving: Serving) -> None:
    async def run_requests() -> dict[str, str]:
        async with serving() as client:
            slugs = [p.slug for p in load_personas().values() if not set(p.places) & {"any", "control", "tight"}]
            answers = {slug: await post_request(client, build_control_request(slug, 5)) for slug in slugs}
        return {slug: answer.message["content"] for slug, answer in answers.items()}

    assert set(asyncio.run(run_requests()).values()) == {"Done."}
