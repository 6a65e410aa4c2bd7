"""Checks of sampling options against scripted endpoints."""

from collections.abc import AsyncIterator

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.prober import Prober
from toolbench.providers.probing.sampling_checks import check_max_tokens, check_temperature
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    error_reply,
    text_reply,
)


async def _run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
    yield await check_temperature(prober)


@pytest.mark.parametrize(
    ("texts", "outcome", "honoured"),
    [
        (("Kestrel", "Kestrel"), "passed", ("temperature",)),
        (("Kestrel", "Heron"), "failed", None),
        (("", ""), "unknown", None),
        (("", "Kestrel"), "unknown", None),
    ],
)
def test_check_temperature_compares_only_answers_with_text(
    texts: tuple[str, str], outcome: str, honoured: tuple[str, ...] | None
) -> None:
    with ScriptedServer(map(text_reply, texts)) as provider:
        found = run_probe(provider.endpoint(), _run_check)

    assert found.checks["temperature"].outcome == outcome
    assert (found.capabilities.honours or None) == honoured


@pytest.mark.parametrize(
    ("accepted", "refused"), [("max_tokens", "max_completion_tokens"), ("max_completion_tokens", "max_tokens")]
)
def test_check_max_tokens_skips_a_name_that_the_endpoint_refuses(accepted: str, refused: str) -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        body = seen.json()
        if refused in body:
            return error_reply(400, f"Unsupported parameter: '{refused}'. Use '{accepted}' instead.")
        return text_reply("one two three four five six seven eight nine ten" if body[accepted] == 4 else "Kestrel")

    async def run_checks(prober: Prober) -> AsyncIterator[ProbeCheck]:
        yield await check_max_tokens(prober)
        yield await check_temperature(prober)

    with ScriptedServer(respond) as provider:
        found = run_probe(provider.endpoint(), run_checks)

    check = found.checks["max_tokens"]
    assert (check.outcome, found.capabilities.ignores) == ("failed", ("max_tokens",))
    assert check.sentence == f"{accepted} is accepted and has no effect."
    assert found.checks["temperature"].outcome == "passed"
