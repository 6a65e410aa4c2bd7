"""The same exchange gives the same turn through the gateway and as an evaluation runs it."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import pytest

from tests.gateway.running import QUESTION, TOOLS, in_database, make_alias, make_provider_at, run_simulated
from toolbench.engine.policy.settings import resolve_policy
from toolbench.gateway.dialects.chat import ChatDialect
from toolbench.gateway.turn import TurnOutcome, TurnTarget, build_plan, run_turn
from toolbench.lab.serving.served_aliases import ServedAlias, load_served_aliases
from toolbench.providers.driver.cancellation import CancellationToken
from toolbench.providers.driver.drive import RunContext, drive
from toolbench.providers.driver.step_records import ExchangeStep, ToolStep
from toolbench.providers.http.client import HttpClient
from toolbench.providers.simulated.personas import load_personas

pytestmark = pytest.mark.django_db(transaction=True)

# No simulated model constrains its answers, and Anthropic's wire takes no rendered prompt.
METHODS = [
    ("chat", "native"),
    ("chat", "text_json"),
    ("chat", "template"),
    ("anthropic", "native"),
    ("anthropic", "text_json"),
    ("responses", "native"),
    ("responses", "text_json"),
]
NEVER_ANSWERS = {"hangs", "slow"}
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
    """Return what was sent and what was read of the answer, without the ids that the engine makes."""
    read = step.turn_read
    turn = (
        (read.text, read.path, [(call.name, call.arguments) for call in read.calls], read.finish_reason) if read else ()
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
    await drive(replace(build_plan(request, TurnTarget(alias.endpoint, policy, client)), policy=policy), context)
    return [describe(step) for step in recorder.steps]


async def run_through_gateway(alias: ServedAlias, client: HttpClient) -> list[tuple[Any, ...]]:
    assert alias.endpoint is not None

    async def skip_wait(seconds: float) -> None: ...

    target = TurnTarget(alias.endpoint, alias.resolve_policy("auto"), client)
    outcome = TurnOutcome()
    await run_turn(ChatDialect().parse({"model": "x", **BODY}), target, outcome, skip_wait)
    return [describe(step) for step in outcome.steps if step.turn == 0]


async def compare_all(wire: str, method: str) -> dict[str, Any]:
    different: dict[str, Any] = {}
    async with run_simulated() as first, run_simulated() as second, HttpClient() as client:
        rows = []
        for number, server in enumerate((first, second)):
            provider = await in_database(make_provider_at, server.url, server.key, wire=wire)
            for persona in load_personas().values():
                if wire in persona.wires and persona.slug not in NEVER_ANSWERS:
                    name = f"{number}-{persona.slug}"
                    rows.append(await in_database(make_alias, provider, persona.slug, name, method=method))
        aliases = await in_database(load_served_aliases)
        slugs = [name[2:] for name in rows if name.startswith("0-")]
        assert len(slugs) > 20
        for slug in slugs:
            evaluated = await run_as_evaluation(aliases[f"0-{slug}"], client)
            served = await run_through_gateway(aliases[f"1-{slug}"], client)
            if evaluated != served:
                different[slug] = evaluated, served
    return different


@pytest.mark.parametrize(("wire", "method"), METHODS)
def test_gateway_sends_and_reads_what_an_evaluation_does(wire: str, method: str) -> None:
    assert asyncio.run(compare_all(wire, method)) == {}
