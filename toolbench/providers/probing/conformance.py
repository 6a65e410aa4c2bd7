"""The probes: the one of the first use, and the one that asks everything, in two minutes at most."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from toolbench.providers.probing import calling, conversing, limiting, offering
from toolbench.providers.probing.efforts import check_effort
from toolbench.providers.probing.first_use import check_round_trip, check_tools
from toolbench.providers.probing.prober import LIMIT, Heard, Prober
from toolbench.providers.probing.shapes import check_ids, check_shape
from toolbench.providers.probing.values import Check

SECONDS = 120.0
MOST_REQUESTS = 60  # of one conformance probe, none sent twice

Ask = Callable[[Prober], Awaitable[Check]]


@dataclass(frozen=True, slots=True)
class Question:
    """A check by its name and title, in the order in which they are asked."""

    slug: str
    title: str
    first_use: bool = False


QUESTIONS = (
    Question("prefix", "The address leads to the API"),
    Question("tools", "Calls come back in tool_calls", first_use=True),
    Question("round_trip", "The result is taken and spoken about", first_use=True),
    Question("dropped_tools", "Tools reach the prompt"),
    Question("stream", "Streamed equals whole"),
    Question("tool_choice_none", "tool_choice none"),
    Question("tool_choice_required", "tool_choice required"),
    Question("tool_choice_named", "tool_choice with a name"),
    Question("parallel", "Parallel calls and their flag"),
    Question("empty_arguments", "Calls without arguments"),
    Question("unicode", "Unicode in arguments"),
    Question("constraints", "Constraints are honoured"),
    Question("strict", "Strict tools"),
    Question("names", "Names of tools"),
    Question("keywords", "Keywords of a tool's schema"),
    Question("foreign_history", "Foreign ids and content null"),
    Question("midturn_system", "System message in the middle"),
    Question("error_bodies", "Errors say why"),
    Question("completion", "Raw completion"),
    Question("max_tokens", "The limit of an answer"),
    Question("effort", "The name of the effort"),
    Question("stop", "stop"),
    Question("temperature", "Temperature 0 repeats"),
    Question("seed", "seed"),
    Question("max_tools", "Many tools at once"),
    Question("shape", "Shape of calls"),
    Question("ids", "Ids of calls"),
    Question("reasoning_replay", "Reasoning goes back"),
)
TITLES = {question.slug: question.title for question in QUESTIONS}

_ASKED: tuple[Ask, ...] = (
    calling.check_choice_none,
    calling.check_choice_required,
    calling.check_choice_named,
    calling.check_parallel,
    calling.check_empty_arguments,
    calling.check_unicode,
    limiting.check_constraints,
    limiting.check_strict,
    offering.check_names,
    offering.check_keywords,
    conversing.check_foreign_history,
    conversing.check_midturn_system,
    conversing.check_error_bodies,
    limiting.check_completion,
    limiting.check_max_tokens,
    check_effort,
    limiting.check_stop,
    limiting.check_temperature,
    limiting.check_seed,
    offering.check_max_tools,
)


async def probe_first_use(prober: Prober) -> AsyncIterator[Check]:
    """The least that decides how calls are asked for: two to five requests."""
    prober.check = "tools"
    tools, heard = await check_tools(prober)
    yield _with_limit(tools, prober)
    yield check_round_trip(heard)
    yield check_shape(heard.exchanges)


async def probe_conformance(prober: Prober, seconds: float = SECONDS) -> AsyncIterator[Check]:
    """Every check, one after the other; what there is no time for could not be told. Where the endpoint cannot be
    asked at all nothing more is sent."""
    until = prober.clock() + seconds
    prober.check = "tools"
    tools, heard = await check_tools(prober)
    prober.check = "prefix"
    yield await conversing.check_prefix(prober, tools, heard.error)
    yield _with_limit(tools, prober)
    yield check_round_trip(heard)
    if tools.blocked:
        for question in QUESTIONS[3:]:
            yield Check(question.slug, "unknown", "Not asked: the endpoint does not answer.")
        return
    async for check in _compared(prober, heard, until):
        yield check
    slugs = iter(question.slug for question in QUESTIONS[5:])
    for ask in _ASKED:
        yield await _within(prober, next(slugs), ask, until)
    yield check_shape(prober.exchanges)
    yield check_ids(prober.exchanges)


def _with_limit(check: Check, prober: Prober) -> Check:
    """With the newer name of the limit, where the endpoint wanted it."""
    if prober.limit_name == LIMIT or check.blocked:
        return check
    return replace(check, learned={**check.learned, "limit_name": prober.limit_name})


async def _compared(prober: Prober, heard: Heard, until: float) -> AsyncIterator[Check]:
    async def dropping(asked: Prober) -> Check:
        return conversing.check_dropped_tools(heard, await conversing.without_tools(asked))

    async def streaming(asked: Prober) -> Check:
        return await calling.check_stream(asked, heard)

    yield await _within(prober, "dropped_tools", dropping, until)
    yield await _within(prober, "stream", streaming, until)
    yield conversing.check_reasoning(heard)


async def _within(prober: Prober, slug: str, ask: Ask, until: float) -> Check:
    prober.check = slug
    left = until - prober.clock()
    try:
        async with asyncio.timeout(max(left, 0)):
            return await ask(prober)
    except TimeoutError:
        return Check(slug, "unknown", "Could not be told: the probe's time was over.")
