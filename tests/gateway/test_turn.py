"""Turns of the gateway: compared with turns of an evaluation on the same exchanges, and their faults."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.running import (
    MESSAGES,
    QUESTION,
    TOOLS,
    chat_body,
    in_database,
    make_alias,
    make_provider_at,
    messages_body,
    post,
    run,
    run_simulated,
    scripted_gateway,
)
from toolbench.engine.policy.settings import resolve_policy
from toolbench.gateway.dialects.chat import ChatDialect
from toolbench.gateway.turn import TurnOutcome, TurnTarget, build_plan, run_turn
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Provider
from toolbench.lab.serving.served_aliases import ServedAlias, load_served_aliases
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.http.client import HttpClient
from toolbench.providers.scripted_server import (
    ConnectionEnd,
    ScriptedReply,
    ScriptedServer,
    chat_reply,
    error_reply,
    json_reply,
    text_reply,
)
from toolbench.providers.simulated.personas import load_personas
from toolbench.providers.simulated.server import SimulatedServer

pytestmark = pytest.mark.django_db(transaction=True)

WIRES = ("chat", "anthropic", "responses")
METHODS = ("native", "text_json", "template", "constrained")
WITHOUT_PROMPTS = ("anthropic", "responses")  # wires that take no rendered prompt, so no alias can use the method
COMBINATIONS = [
    (wire, method) for wire in WIRES for method in METHODS if method != "template" or wire not in WITHOUT_PROMPTS
]
# No simulated model declares constrained answers, so the tests add this layer to the alias.
CONSTRAINED_LAYER = ("constrained", {"method": "constrained", "constraint": "response_format"})
READ_SECONDS = 30  # enough for a busy machine
BODY = {"seed": 7, "messages": [{"role": "system", "content": "Be short."}, *QUESTION], "tools": TOOLS}


class Recorder:
    """Gate without limits that keeps the exchanges."""

    def __init__(self) -> None:
        self.steps: list[ExchangeStep] = []

    async def reserve(self) -> None: ...

    async def back_off(self, seconds: float) -> None: ...

    def record(self, step: ExchangeStep | ToolStep) -> None:
        if isinstance(step, ExchangeStep):
            self.steps.append(step)


def describe(step: ExchangeStep) -> tuple[Any, ...]:
    """Return the request sent and the turn read from the answer, without the ids that the engine generates."""
    read = step.turn_read
    turn = (
        (read.text, read.method_used, [(call.name, call.arguments) for call in read.calls], read.finish_reason)
        if read
        else ()
    )
    return step.request_body, step.status, step.error.code if step.error else "", turn


async def run_as_evaluation(alias: ServedAlias, client: HttpClient) -> list[tuple[Any, ...]]:
    """Return the exchanges of the first turn of a trial with the alias's layers."""
    assert alias.endpoint is not None
    recorder = Recorder()
    policy = resolve_policy((*alias.layers, ("scenario", {"max_turns": 1}))).policy
    context = RunContext(
        endpoint=alias.endpoint,
        client=client,
        call_tool=lambda name, arguments, call_id: {},
        gate=recorder,
        recorder=recorder,
        clock=time.perf_counter,
        cancelled=CancellationToken(),
    )
    request = ChatDialect().parse({"model": "x", **BODY})
    plan = replace(build_plan(request, TurnTarget(alias.endpoint, policy, client)), policy=policy)
    await drive(plan, context)
    return [describe(step) for step in recorder.steps]


async def run_through_gateway(alias: ServedAlias, client: HttpClient) -> list[tuple[Any, ...]]:
    assert alias.endpoint is not None

    async def skip_wait(seconds: float) -> None: ...

    target = TurnTarget(alias.endpoint, alias.resolve_policy("auto"), client)
    outcome = TurnOutcome()
    await run_turn(ChatDialect().parse({"model": "x", **BODY}), target, outcome, skip_wait)
    return [describe(step) for step in outcome.steps if step.turn == 0]


async def load_alias(server: SimulatedServer, slug: str, wire: str, method: str) -> ServedAlias:
    """Return an alias for a simulated model."""
    provider, _ = await in_database(
        Provider.objects.get_or_create,
        base_url=server.url,
        defaults={"wire": wire, "read_seconds": READ_SECONDS, "max_attempts": 1, "key_encrypted": encrypt(server.key)},
    )
    name = await in_database(make_alias, provider, slug, method="native" if method == "constrained" else method)
    alias = (await in_database(load_served_aliases))[name]
    added = (CONSTRAINED_LAYER,) if method == "constrained" else ()
    return replace(alias, layers=(*alias.layers, *added))


def serve_from(alias: ServedAlias, slug: str, server: SimulatedServer) -> ServedAlias:
    """Return the alias with another model at another server; each server counts the requests that it got."""
    assert alias.endpoint is not None
    return replace(alias, endpoint=replace(alias.endpoint, model=slug, base_url=server.url, key=server.key))


async def compare_all(wire: str, method: str) -> dict[str, tuple[Any, Any]]:
    """Return, by simulated model, the exchanges of an evaluation and those of the gateway."""
    async with run_simulated() as first, run_simulated() as second, HttpClient() as client:
        # Only rendered prompts have settings of the model.
        slugs = load_personas() if (wire, method) == ("chat", "template") else ["perfect"]
        aliases = {slug: await load_alias(first, slug, wire, method) for slug in slugs}
        found = {}
        for slug in load_personas():
            alias = aliases.get(slug, aliases["perfect"])
            evaluated = await run_as_evaluation(serve_from(alias, slug, first), client)
            found[slug] = evaluated, await run_through_gateway(serve_from(alias, slug, second), client)
        return found


@pytest.mark.parametrize(("wire", "method"), COMBINATIONS)
def test_run_turn_sends_and_reads_the_same_as_an_evaluation(wire: str, method: str) -> None:
    found = asyncio.run(compare_all(wire, method))
    assert len(found) == len(load_personas())
    assert all(evaluated for evaluated, _ in found.values())
    assert {name: pair for name, pair in found.items() if pair[0] != pair[1]} == {}


def test_run_turn_with_calls_in_text_gives_each_call_its_own_id() -> None:
    replies = [
        text_reply(f'```json\n{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}\n```')
        for city in ("Rome", "Oslo", "Bern")
    ]

    async def hold_conversation() -> None:
        messages: list[Any] = list(QUESTION)
        async with scripted_gateway(*replies, method="text_json") as (gateway, upstream):
            for weather in ("sunny", "snow", "rain"):
                status, answer, _ = await post(gateway, chat_body(messages=messages))
                assert status == 200
                message = answer["choices"][0]["message"]
                (call,) = message["tool_calls"]
                messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": weather}]
            ids = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
            assert len(set(ids)) == 3
            sent = [str(message["content"]) for message in upstream.seen[2].json()["messages"]]
            results = [content for content in sent if content.startswith("Result of")]
            assert results == [f"Result of get_weather ({ids[0]}):\nsunny", f"Result of get_weather ({ids[1]}):\nsnow"]

    run(hold_conversation)


@pytest.mark.parametrize("content", ["", " \n"])
def test_run_turn_sends_a_blank_message_of_the_user(content: str) -> None:
    async def ask() -> None:
        messages = [*QUESTION, {"role": "assistant", "content": "Sunny."}, {"role": "user", "content": content}]
        async with scripted_gateway(text_reply("Hello.")) as (gateway, upstream):
            status, _, _ = await post(gateway, chat_body(messages=messages))
            assert (status, upstream.seen[0].json()["messages"]) == (200, messages)

    run(ask)


def test_gateway_messages_usage_counts_cached_tokens_once() -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}}

    async def ask() -> None:
        async with scripted_gateway(chat_reply({"content": "Hello."}, usage=usage)) as (gateway, _):
            _, answer, _ = await post(gateway, messages_body(), MESSAGES)
            assert answer["usage"] == {"input_tokens": 20, "output_tokens": 5, "cache_read_input_tokens": 80}

    run(ask)


@pytest.mark.parametrize("wire", WITHOUT_PROMPTS)
def test_save_alias_refuses_template_method_without_prompt_wire(wire: str) -> None:
    provider = make_provider_at("http://127.0.0.1:9", wire=wire)
    with pytest.raises(InvalidFieldsError, match="The method template needs the API OpenAI chat completions"):
        make_alias(provider, "perfect", method="template")


@pytest.mark.parametrize(
    ("reply", "is_upstream_fault"),
    [
        (ScriptedReply(200, {}, b'{"choices": [', declared=99, ending=ConnectionEnd.CLOSE), True),
        (json_reply({"id": "no answer"}), True),
        (error_reply(500, "The model produced output that does not match"), True),
        (error_reply(500), True),
        (error_reply(400, "Unknown parameter"), False),
    ],
    ids=["broken_off", "not_readable", "invalid_call", "server_error", "refused"],
)
def test_run_turn_tells_fault_of_upstream_from_refusal(reply: ScriptedReply, is_upstream_fault: bool) -> None:
    async def turn() -> TurnOutcome:
        outcome = TurnOutcome()
        with ScriptedServer([reply]) as server:
            async with HttpClient() as client:
                target = TurnTarget(server.endpoint(max_attempts=1), resolve_policy(()).policy, client)
                await run_turn(ChatDialect().parse(chat_body()), target, outcome, asyncio.sleep)
        return outcome

    outcome = asyncio.run(turn())
    assert outcome.error is not None
    assert outcome.is_upstream_fault == is_upstream_fault
