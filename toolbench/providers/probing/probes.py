"""The two probes of an endpoint: a short one at first use, and a conformance probe with every check."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace

from toolbench.providers.probing import (
    completion_check,
    constraint_checks,
    history_checks,
    sampling_checks,
    tool_choice_checks,
    tool_set_checks,
)
from toolbench.providers.probing.answer_shape import check_ids, check_shape
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.first_use_checks import check_round_trip, check_tools
from toolbench.providers.probing.prober import (
    DEFAULT_LIMIT_NAME,
    MAX_ATTEMPTS,
    ProbeLimitReachedError,
    Prober,
    ProbeResult,
)
from toolbench.providers.probing.reasoning_effort_check import check_effort

MAX_PROBE_SECONDS = 120.0
MAX_REQUESTS = 60  # of one conformance probe, with retries and the counted requests of earlier executions
MAX_FIRST_USE_REQUESTS = 5  # of one probe at first use; retries are not counted
MAX_FIRST_USE_ATTEMPTS = MAX_FIRST_USE_REQUESTS * MAX_ATTEMPTS  # with retries

RunCheck = Callable[[Prober], Awaitable[ProbeCheck]]


@dataclass(frozen=True, slots=True)
class CheckDefinition:
    """Check of a conformance probe.

    Attributes:
        slug: name of the check in stored probes.
        title: name of the check on pages.
        run: sends the check's requests and returns its result; None for a check that `probe_conformance`
            calls itself, because it shares requests with other checks.
    """

    slug: str
    title: str
    run: RunCheck | None = None


CHECKS = (
    CheckDefinition("prefix", "Address of the API"),
    CheckDefinition("tools", "Calls in tool_calls"),
    CheckDefinition("round_trip", "Answer to a tool result"),
    CheckDefinition("dropped_tools", "Tools in the prompt"),
    CheckDefinition("stream", "Streamed calls"),
    CheckDefinition("tool_choice_none", "tool_choice none", tool_choice_checks.check_choice_none),
    CheckDefinition("tool_choice_required", "tool_choice required", tool_choice_checks.check_choice_required),
    CheckDefinition("tool_choice_named", "tool_choice with a name", tool_choice_checks.check_choice_named),
    CheckDefinition("parallel", "Parallel calls", tool_choice_checks.check_parallel),
    CheckDefinition("empty_arguments", "Calls without arguments", tool_choice_checks.check_empty_arguments),
    CheckDefinition("unicode", "Unicode in arguments", tool_choice_checks.check_unicode),
    CheckDefinition("constraints", "Enforced constraints", constraint_checks.check_constraints),
    CheckDefinition("strict", "Strict tools", constraint_checks.check_strict),
    CheckDefinition("names", "Names of tools", tool_set_checks.check_names),
    CheckDefinition("keywords", "Keywords of a tool's schema", tool_set_checks.check_keywords),
    CheckDefinition("foreign_history", "Foreign ids and content null", history_checks.check_foreign_history),
    CheckDefinition("midturn_system", "System message in the middle", history_checks.check_midturn_system),
    CheckDefinition("error_bodies", "Reasons in errors", history_checks.check_error_bodies),
    CheckDefinition("completion", "Raw completion", completion_check.check_completion),
    CheckDefinition("max_tokens", "Token limit", sampling_checks.check_max_tokens),
    CheckDefinition("effort", "Parameter for the reasoning effort", check_effort),
    CheckDefinition("stop", "Stop sequences", sampling_checks.check_stop),
    CheckDefinition("temperature", "Equal answers at temperature 0", sampling_checks.check_temperature),
    CheckDefinition("seed", "Seed", sampling_checks.check_seed),
    CheckDefinition("max_tools", "Many tools at once", tool_set_checks.check_max_tools),
    CheckDefinition("shape", "Shape of calls"),
    CheckDefinition("ids", "Ids of calls"),
    CheckDefinition("reasoning_replay", "Reasoning in later requests"),
)
TITLES = {definition.slug: definition.title for definition in CHECKS}
# If the endpoint does not answer, these checks have results nevertheless; the others are not checked.
_CHECKED_WITHOUT_ANSWER = ("prefix", "tools", "round_trip")


async def probe_first_use(prober: Prober) -> AsyncIterator[ProbeCheck]:
    """Run the checks that decide which method is used to request calls, and yield their results.

    They send up to `MAX_FIRST_USE_REQUESTS` requests; retries are not counted.

    Raises:
        ProbeLimitReachedError: the prober has sent its `max_requests`.
    """
    prober.check_slug = "tools"
    tools, result = await check_tools(prober)
    yield _add_limit_name(tools, prober)
    yield check_round_trip(result)
    yield check_shape(result.exchanges)


async def probe_conformance(prober: Prober, seconds: float = MAX_PROBE_SECONDS) -> AsyncIterator[ProbeCheck]:
    """Run every check, for at most `seconds` and with at most `MAX_REQUESTS` requests, and yield the results.

    The first two checks, `tools` and `prefix`, have no time limit. Any other check that has to send requests after the
    time is up, or beyond the limit, is inconclusive. If the endpoint cannot be probed at all, only other prefixes are
    tried.

    Raises:
        ProbeLimitReachedError: the limit is reached in `tools` or `prefix`.
    """
    deadline = prober.clock() + seconds
    prober.max_requests = MAX_REQUESTS
    prober.check_slug = "tools"
    tools, result = await check_tools(prober)
    prober.check_slug = "prefix"
    yield await history_checks.check_prefix(prober, tools, result.error)
    yield _add_limit_name(tools, prober)
    yield check_round_trip(result)
    if tools.blocked:
        for slug in TITLES:
            if slug not in _CHECKED_WITHOUT_ANSWER:
                yield ProbeCheck(slug, "unknown", "Not checked: the endpoint does not answer.")
        return
    async for check in _run_comparison_checks(prober, result, deadline):
        yield check
    for definition in CHECKS:
        if definition.run is not None:
            yield await _run_check(prober, definition.slug, definition.run, deadline)
    yield check_shape(prober.exchanges)
    yield check_ids(prober.exchanges)


def _add_limit_name(check: ProbeCheck, prober: Prober) -> ProbeCheck:
    """Add the parameter for the token limit to the check's capabilities if it is the newer one."""
    if prober.limit_name == DEFAULT_LIMIT_NAME or check.blocked:
        return check
    return replace(check, learned={**check.learned, "limit_name": prober.limit_name})


async def _run_comparison_checks(prober: Prober, result: ProbeResult, deadline: float) -> AsyncIterator[ProbeCheck]:
    """Run the checks of tools, streams and reasoning that use the result of the first request."""

    async def check_dropped_tools(prober: Prober) -> ProbeCheck:
        return history_checks.check_dropped_tools(result, await history_checks.ask_without_tools(prober))

    async def check_stream(prober: Prober) -> ProbeCheck:
        return await tool_choice_checks.check_stream(prober, result)

    yield await _run_check(prober, "dropped_tools", check_dropped_tools, deadline)
    yield await _run_check(prober, "stream", check_stream, deadline)
    yield history_checks.check_reasoning(result)


async def _run_check(prober: Prober, slug: str, run: RunCheck, deadline: float) -> ProbeCheck:
    prober.check_slug = slug
    seconds_left = deadline - prober.clock()
    try:
        async with asyncio.timeout(max(seconds_left, 0)):
            return await run(prober)
    except TimeoutError:
        return ProbeCheck(slug, "unknown", "Inconclusive: the probe ran out of time.")
    except ProbeLimitReachedError:
        return ProbeCheck(slug, "unknown", f"Inconclusive: the probe has sent its {prober.max_requests} requests.")
