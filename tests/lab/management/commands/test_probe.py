"""`manage.py probe`: output, refusals and exit codes."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from tests.lab.scripted_runs import make_scripted_model
from toolbench.lab.models import Model, Probe
from toolbench.providers.scripted_server import (
    ReceivedRequest,
    ScriptedReply,
    ScriptedServer,
    error_reply,
    text_reply,
    tool_call_reply,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def model(scripted: ScriptedServer) -> Model:
    return make_scripted_model(scripted)


def echo_call(request: ReceivedRequest) -> ScriptedReply:
    """Call the tool as requested, and answer its result with text."""
    is_result = request.json()["messages"][-1]["role"] == "tool"
    return text_reply("It gave it back.") if is_result else tool_call_reply(("probe_echo", {"value": "x"}))


def run_probe(model: Model, script: Any, **options: Any) -> str:
    out = StringIO()
    with ScriptedServer(script) as server:
        model.provider.base_url = server.base_url
        model.provider.save()
        call_command("probe", model.name, provider=model.provider.name, stdout=out, **options)
    return out.getvalue()


def test_probe_prints_every_check_of_the_endpoint(model: Model) -> None:
    printed = run_probe(model, echo_call)

    probe = Probe.objects.get()
    assert (probe.state, probe.ok, probe.kind) == ("done", True, "conformance")
    assert f"{model.provider.name}: {model.name}\n" in printed
    assert "  passed: Calls in tool_calls. " in printed
    assert len([line for line in printed.splitlines() if ": " in line and line.startswith("  ")]) == len(probe.checks)
    assert f"/probes/{probe.pk}/" in printed


def test_probe_without_a_finding_exits_with_1(model: Model) -> None:
    with pytest.raises(CommandError, match="1 of 1 probes did not find out") as raised:
        run_probe(model, lambda request: error_reply(401, "invalid key"))

    assert raised.value.returncode == 1


def test_probe_of_an_unknown_model_exits_with_2(model: Model) -> None:
    with pytest.raises(CommandError, match="No model at") as raised:
        call_command("probe", "gpt-9", provider=model.provider.name)

    assert (raised.value.returncode, Probe.objects.count()) == (2, 0)


def test_probe_refuses_paid_requests_without_yes(model: Model, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 1
    model.price = {"input": 1, "output": 1}
    model.save()

    with pytest.raises(CommandError, match="Add --yes") as raised:
        run_probe(model, echo_call)

    assert (raised.value.returncode, Probe.objects.count()) == (2, 0)
    assert "Calls in tool_calls" in run_probe(model, echo_call, yes=True)
