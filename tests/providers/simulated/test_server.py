import asyncio
from dataclasses import dataclass, replace

import aiohttp
import pytest

from tests.providers.simulated.conftest import Serving
from tests.providers.simulated.state_tasks import (
    HttpAnswer,
    build_control_request,
    build_state_request,
    post_bytes,
    post_request,
)
from toolbench.providers.simulated.personas import Persona, load_personas
from toolbench.providers.simulated.seeded_random import build_random
from toolbench.providers.simulated.server import SimulatedServer


def test_every_persona_is_listed_with_its_true_rates(serving: Serving) -> None:
    async def journey() -> None:
        async with serving() as client:
            listed = (await (await client.get("/v1/models")).json())["data"]
        assert [model["id"] for model in listed] == list(load_personas())
        assert all(0 <= model["simulated"]["true_rates"]["drift"] <= 1 for model in listed)
        assert all(model["description"] for model in listed)

    asyncio.run(journey())


@pytest.mark.parametrize("key", ["", "Bearer wrong", "Bearer ü"])
def test_a_wrong_key_is_refused_with_401(serving: Serving, key: str) -> None:
    async def journey() -> None:
        async with serving() as client:
            headers = {"Authorization": key}
            listing = await client.get("/v1/models", headers=headers)
            chat = await client.post("/v1/chat/completions", headers=headers, json=build_state_request("perfect", 1))
            assert listing.status == chat.status == 401
            assert (await chat.json())["error"]["type"] == "authentication_error"

    asyncio.run(journey())


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"not json", 400),
        (b"[]", 400),
        (b"[" * 100_000, 400),
        (b'{"model": "perfect"}', 400),
        (b'{"model": "perfect", "messages": ["text"]}', 400),
        (b'{"model": "perfect", "messages": []}', 200),
        (b'{"model": "nobody", "messages": []}', 404),
        (b'{"model": "perfect", "messages": [{"role": "assistant", "tool_calls": [7, {"function": 3}]}]}', 200),
        (b'{"model": "perfect", "messages": [{"role": "user", "content": null}], "tools": [{"function": {}}]}', 200),
    ],
)
def test_an_odd_request_gets_an_answer_and_never_a_500(serving: Serving, raw: bytes, status: int) -> None:
    async def journey() -> None:
        async with serving() as client:
            answer = await post_bytes(client, raw)
        assert answer.status == status
        assert answer.json()

    asyncio.run(journey())


def test_every_answer_says_that_it_is_simulated(serving: Serving) -> None:
    silent = {"hangs", "drops-connection"}

    async def journey() -> list[HttpAnswer]:
        async with serving() as client:
            slugs = [slug for slug in load_personas() if slug not in silent]
            return [await post_request(client, build_control_request(slug, 3)) for slug in slugs]

    for answer in asyncio.run(journey()):
        assert answer.label.split(";")[0] in load_personas()


def test_a_completion_is_labelled_simulated_and_counts_tokens(serving: Serving) -> None:
    async def journey() -> HttpAnswer:
        async with serving() as client:
            return await post_request(client, build_state_request("perfect", 1))

    body = asyncio.run(journey()).json()
    assert body["system_fingerprint"] == "simulated"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 20


def test_the_same_seed_gives_the_same_bytes_and_ten_seeds_give_ten_answers(serving: Serving) -> None:
    async def journey() -> tuple[list[bytes], list[bytes]]:
        async with serving() as client:
            first = [(await post_request(client, build_state_request("reliable-70", seed))).body for seed in range(10)]
            again = [(await post_request(client, build_state_request("reliable-70", seed))).body for seed in range(10)]
        return first, again

    first, again = asyncio.run(journey())
    assert first == again
    assert len(set(first)) == 10


def test_without_a_seed_answers_differ(serving: Serving) -> None:
    async def journey() -> set[bytes]:
        async with serving() as client:
            return {(await post_request(client, build_state_request("perfect", None))).body for _ in range(5)}

    assert len(asyncio.run(journey())) == 5


def test_dropped_connection_has_no_answer_and_next_try_is_served(serving: Serving) -> None:
    async def journey() -> None:
        async with serving() as client:
            for seed in range(40):
                try:
                    await post_request(client, build_state_request("drops-connection", seed))
                except aiohttp.ServerDisconnectedError:
                    assert (await post_request(client, build_state_request("drops-connection", seed))).message[
                        "tool_calls"
                    ]
                    return
        raise AssertionError("no connection was dropped")

    asyncio.run(journey())


def test_a_persona_that_hangs_is_still_silent_when_others_have_answered(serving: Serving) -> None:
    persona = load_personas()["hangs"]
    seed = next(seed for seed in range(1000) if build_random(seed, persona.slug, "drift").random() < persona.rate)

    async def journey() -> None:
        async with serving() as client:
            silent = asyncio.create_task(post_request(client, build_state_request("hangs", seed)))
            for other in range(20):
                await post_request(client, build_state_request("perfect", other))
            assert not silent.done()
            silent.cancel()

    asyncio.run(journey())


@dataclass(slots=True)
class TwoModelsServer(SimulatedServer):
    """Every answer is that of `perfect`, with the fault of the named model."""

    latency_factor: float = 0

    def find_models(self, name: str) -> tuple[Persona, ...]:
        models = load_personas()
        return models["perfect"], replace(models[name], rate=1.0)


@pytest.mark.parametrize(
    ("model", "is_streamed", "fault"),
    [
        ("rate-limited", False, "rate_limited"),
        ("tools-dropped", False, "tools_dropped"),
        ("prose-only", False, "only_prose"),
        ("arguments-object", False, "arguments_object"),
        ("stream-no-done", True, "done_missing"),
    ],
)
def test_label_names_the_fault_of_a_further_model(serving: Serving, model: str, is_streamed: bool, fault: str) -> None:
    async def journey() -> str:
        async with serving(TwoModelsServer()) as client:
            return (await post_request(client, build_state_request(model, 1) | {"stream": is_streamed})).label

    assert asyncio.run(journey()) == f"perfect; drift={fault}"
