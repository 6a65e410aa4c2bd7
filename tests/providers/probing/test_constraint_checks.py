"""Checks of constraints against scripted endpoints."""

from collections.abc import AsyncIterator

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.constraint_checks import check_constraints
from toolbench.providers.probing.prober import Prober
from toolbench.providers.scripted_server import ScriptedServer, chat_reply


async def _run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
    yield await check_constraints(prober)


@pytest.mark.parametrize(("text", "outcome", "constrained"), [("Oslo", "failed", ()), ("", "unknown", None)])
def test_check_constraints_with_blank_answers_is_inconclusive(
    text: str, outcome: str, constrained: tuple[str, ...] | None
) -> None:
    reply = chat_reply({"content": text}, finish_reason="stop" if text else "length")
    with ScriptedServer(lambda seen: reply) as provider:
        found = run_probe(provider.endpoint(), _run_check)

    assert (found.checks["constraints"].outcome, found.capabilities.constrained) == (outcome, constrained)
