from collections.abc import AsyncIterator

import pytest

from tests.providers.probing.probe_runs import run_probe
from toolbench.providers.http.error_codes import build_exchange_error
from toolbench.providers.probing.check_result import ProbeCheck
from toolbench.providers.probing.history_checks import check_error_bodies, check_prefix
from toolbench.providers.probing.prober import Prober
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, error_reply, json_reply

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


@pytest.mark.parametrize(
    ("base_path", "models_path", "prefix", "outcome", "sentence"),
    [
        ("", "/v1/models", "/v1", "passed", "check the name of the model"),
        ("/v1", "/v1/models", "/v1", "passed", "check the name of the model"),
        ("/v1", "/v1/models", "/v2", "failed", "but a list of models under /v1"),
        ("/v1", "/nothing", "/v1", "unknown", "There is no API here"),
    ],
)
def test_check_prefix_names_another_prefix_only_without_models_here(
    base_path: str, models_path: str, prefix: str, outcome: str, sentence: str
) -> None:
    def respond(seen: ReceivedRequest) -> ScriptedReply:
        return json_reply({"data": [{"id": "m"}]}) if seen.path == models_path else error_reply(404, "no such model")

    async def run_check(prober: Prober) -> AsyncIterator[ProbeCheck]:
        blocked = ProbeCheck("tools", "unknown", "There was no answer.", blocked=True)
        yield await check_prefix(prober, blocked, build_exchange_error("not_found"))

    with ScriptedServer(respond) as provider:
        endpoint = provider.endpoint(base_url=provider.base_url + base_path, api_prefix=prefix)
        check = run_probe(endpoint, run_check).checks["prefix"]
    addresses = [seen.path for seen in provider.seen]

    assert (check.outcome, sentence in check.sentence) == (outcome, True)
    assert len(addresses) == len(set(addresses))
