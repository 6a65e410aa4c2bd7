from collections.abc import AsyncIterator

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.prober import Prober
from toolbench.providers.probing.tool_choice_checks import check_parallel
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    error_reply,
    tool_call_reply,
)


@pytest.mark.parametrize(("status", "outcome"), [(400, "failed"), (500, "unknown")])
def test_check_parallel_with_failed_second_request_does_not_pass(status: int, outcome: str) -> None:
    async def run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
        yield await check_parallel(prober)

    def answer(seen: ReceivedRequest) -> ScriptedReply:
        if seen.json().get("parallel_tool_calls") is False:
            return error_reply(status, "parallel_tool_calls: unknown field")
        return tool_call_reply(("probe_echo", {"value": "red"}), ("probe_echo", {"value": "blue"}))

    with ScriptedServer(answer) as provider:
        found = run_probe(provider.endpoint(), run_check)
    assert found.checks["parallel"].outcome == outcome
    assert "unknown field" in found.checks["parallel"].sentence
    assert len(found.checks["parallel"].exchanges) == len(found.exchanges)
    assert found.capabilities.supports_parallel_tools is True
