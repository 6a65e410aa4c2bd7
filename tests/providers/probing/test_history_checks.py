from collections.abc import AsyncIterator

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.history_checks import check_error_bodies
from toolbench.providers.probing.prober import Prober
from toolbench.providers.scripted_server import ScriptedServer, json_reply

REASON = "An invalid request is refused with 400 and a reason."
NO_REASON = "An invalid request is refused with 400, without a reason in a JSON body."


async def _run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
    yield await check_error_bodies(prober)


@pytest.mark.parametrize(
    ("body", "outcome", "sentence"),
    [
        ({"error": {"message": "messages must be a list"}}, "passed", REASON),
        ({"detail": "messages must be a list"}, "passed", REASON),
        ({}, "failed", NO_REASON),
        ([], "failed", NO_REASON),
        ({"error": {}}, "failed", NO_REASON),
    ],
)
def test_check_error_bodies_without_reason_fails(body: object, outcome: str, sentence: str) -> None:
    with ScriptedServer([json_reply(body, status=400)]) as provider:
        check = run_probe(provider.endpoint(), _run_check).checks["error_bodies"]
    assert (check.outcome, check.sentence) == (outcome, sentence)
