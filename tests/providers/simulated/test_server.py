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


def test_simulated_server_lists_every_persona_with_its_true_rates(serving: Serving) -> None:
    async def run_requests() -> None:
        async with serving() as client:
            listed = (await (await client.get("/v1/models")).json())["data"]
        assert [model["id"] for model in listed] == list(load_personas())
        assert all(0 <= model["simulated"]["true_rates"]["drift"] <= 1 for model in listed)
        assert all(model["description"] for model in listed)

    asyncio.run(run_requests())


@pytest.mark.parametrize("key", ["", "Bearer wrong", "Bearer ü"])
def test_simulated_server_refuses_a_wrong_key_with_401(serving: Serving, key: str) -> None:
    async def run_requests() -> None:
        async with serving() as client:
            headers = {"Authorization": key}
            listing = await client.get("/v1/models", headers=headers)
            chat = await client.post("/v1/chat/completions", headers=headers, json=build_state_request("perfect", 1))
            assert listing.status == chat.status == 401
            assert (await chat.json())["error"]["type"] == "authentication_error"

    asyncio.run(run_requests())


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
def test_simulated_server_answers_an_odd_request_without_500(serving: Serving, raw: bytes, status: int) -> None:
    async def run_requests() -> None:
        async with serving() as client:
            answer = await post_bytes(client, raw)
        assert answer.status == status
        assert answer.json()

    asyncio.run(run_requests())


def test_simulated_server_labels_every_answer(serving: Serving) -> None:
    silent = {"hangs", "drops-connection"}

    async def run_requests() -> list[HttpAnswer]:
        async with serving() as client:
            slugs = [slug for slug in load_personas() if slug not in silent]
            return [await post_request(client, build_control_request(slug, 3)) for slug in slugs]

    for answer in asyncio.run(run_requests()):
        assert answer.label.split(";")[0] in load_personas()


def test_simulated_server_completion_is_labelled_and_counts_tokens(serving: Serving) -> None:
    async def run_requests() -> HttpAnswer:
        async with serving() as client:
            return await post_request(client, build_state_request("perfect", 1))

    body = asyncio.run(run_requests()).json()
    assert body["system_fingerprint"] == "simulated"
    usage = body["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"] > 20


def test_simulated_server_answers_depend_only_on_the_seed(serving: Serving) -> None:
    async def run_requests() -> tuple[list[bytes], list[bytes]]:
        async with serving() as client:
            first = [(await post_request(client, build_state_request("reliable-70", seed))).body for seed in range(10)]
            again = [(await post_request(client, build_state_request("reliable-70", seed))).body for seed in range(10)]
        return first, again

    first, again = asyncio.run(run_requests())
    assert first == again
    assert len(set(first)) == 10


def test_simulated_server_without_a_seed_gives_different_answers(serving: Serving) -> None:
    async def run_requests() -> set[bytes]:
        async with serving() as client:
            return {(await post_request(client, build_state_request("perfect", None))).body for _ in range(5)}

    assert len(asyncio.run(run_requests())) == 5


def test_simulated_server_drops_a_connection_and_serves_the_next_try(serving: Serving) -> None:
    async def run_requests() -> None:
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

    asyncio.run(run_requests())


def test_simulated_server_hanging_persona_does_not_block_others(serving: Serving) -> None:
    persona = load_personas()["hangs"]
    seed = next(seed for seed in range(1000) if build_random(seed, persona.slug, "drift").random() < persona.rate)

    async def run_requests() -> None:
        async with serving() as client:
            silent = asyncio.create_task(post_request(client, build_state_request("hangs", seed)))
            for other in range(20):
                await post_request(client, build_state_request("perfect", other))
            assert not silent.done()
            silent.cancel()

    asyncio.run(run_requests())


@dataclass(slots=True)
class TwoModelsServer(SimulatedServer):
    """Server whose every answer is that of `perfect` with the fault of the named model."""

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
def test_simulated_server_label_names_the_fault_of_a_further_model(
    serving: Serving, model: str, is_streamed: bool, fault: str
) -> None:
    async def run_requests() -> str:
        async with serving(TwoModelsServer()) as client:
            return (await post_request(client, build_state_request(model, 1) | {"stream": is_streamed})).label

    assert asyncio.run(run_requests()) == f"perfect; drift={fault}"
