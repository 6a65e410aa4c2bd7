import pytest
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from tests.factories import make_model, make_provider
from tests.page_html import read_html
from toolbench.lab.endpoints.probe_page import get_probe_page
from toolbench.lab.models import Model, Preset, Probe, ProbeExchange
from toolbench.providers.probing.probes import CHECKS, MAX_REQUESTS

pytestmark = pytest.mark.django_db

CHECK = {"slug": "tools", "outcome": "passed", "sentence": "It came back.", "learned": {}, "exchanges": [1]}


def make_probe(model: Model, **fields: object) -> Probe:
    defaults = {"kind": "conformance", "state": "done", "ok": True, "finished_at": timezone.now(), "checks": [CHECK]}
    return Probe.objects.create(
        model=model, provider=model.provider, model_name=model.name, provider_name="Example", **(defaults | fields)
    )


def test_probe_button_queues_one_probe_and_shows_it(owner_client: Client) -> None:
    model = make_model()

    first = owner_client.post(f"/models/{model.pk}/probe/")
    second = owner_client.post(f"/models/{model.pk}/probe/")

    probe = Probe.objects.get()
    assert first.headers["Location"] == second.headers["Location"] == f"/probes/{probe.pk}/"
    assert (probe.kind, probe.state) == ("conformance", "queued")


def test_probe_page_polls_only_while_probe_is_running(owner_client: Client) -> None:
    probe = make_probe(make_model(), state="running", ok=None)
    live = read_html(owner_client.get(f"/probes/{probe.pk}/"))
    Probe.objects.update(state="done", ok=True)
    over = read_html(owner_client.get(f"/probes/{probe.pk}/"))

    assert f'hx-get="/probes/{probe.pk}/"' in live
    assert '<meta http-equiv="refresh"' in live
    assert f"1 of {len(CHECKS)} checks" in live
    assert "hx-get" not in over


def test_probe_page_of_queued_probe_names_probe_before_it(owner_client: Client) -> None:
    running = make_probe(make_model(), state="running", ok=None)
    queued = make_probe(make_model("second"), state="queued", ok=None, checks=[])
    text = read_html(owner_client.get(f"/probes/{queued.pk}/"))
    assert "This probe waits for" in text
    assert f'href="/probes/{running.pk}/"' in text


def test_probe_page_of_own_server_shows_no_cost(owner_client: Client) -> None:
    probe = make_probe(make_model(provider=make_provider("Own", base_url="http://127.0.0.1:8799")))
    remote_probe = make_probe(make_model())
    assert "$0.00" in read_html(owner_client.get(f"/probes/{probe.pk}/"))
    assert "$0.00" not in read_html(owner_client.get(f"/probes/{remote_probe.pk}/"))


def test_probe_page_cost_follows_tokens_and_price_of_model() -> None:
    price = {"input": 1.0, "output": 2.0, "date": "2026-11-01", "source": "a list"}
    probe = make_probe(make_model(price=price))
    assert get_probe_page(probe.pk).cost is None
    tokens = {"input_tokens": 1_000_000, "output_tokens": 500_000}
    ProbeExchange.objects.create(probe=probe, execution=1, ordinal=1, check_slug="tools", duration_ms=5, **tokens)
    assert get_probe_page(probe.pk).cost == 2.0


def test_probe_page_shows_bytes_of_exchange(owner_client: Client) -> None:
    probe = make_probe(make_model())
    ProbeExchange.objects.create(
        probe=probe, execution=1, ordinal=1, check_slug="tools", duration_ms=5, request=b'{"asked": 1}', response=b"<b>"
    )

    shown = read_html(owner_client.get(f"/probes/{probe.pk}/?exchange=1"))

    assert "&quot;asked&quot;: 1" in shown
    assert "&lt;b&gt;" in shown
    assert "Exchange 1" not in read_html(owner_client.get(f"/probes/{probe.pk}/?exchange=zero")).replace(
        '"Exchange 1"', ""
    )


def test_probe_page_of_inconclusive_probe_records_no_capability(owner_client: Client) -> None:
    probe = make_probe(make_model(), ok=False, sentence="Inconclusive: Invalid key (authentication)")

    assert "No capability is stored" in read_html(owner_client.get(f"/probes/{probe.pk}/"))


def test_probe_adopt_button_adopts_proposed_preset_once(owner_client: Client) -> None:
    model = make_model()
    probe = make_probe(model, learned={"supports_tool_use": True, "calls_shape": "object"})

    owner_client.post(f"/probes/{probe.pk}/adopt/")
    owner_client.post(f"/probes/{probe.pk}/adopt/")

    preset = Preset.objects.get(builtin=False)
    model.refresh_from_db()
    assert preset.patch == {"response_transforms": ["assistant_tool_calls_object_to_array"]}
    assert model.workarounds == [preset.name]
    assert preset.name in read_html(owner_client.get(f"/probes/{probe.pk}/"))


def test_probe_adopt_button_restores_an_archived_preset(owner_client: Client) -> None:
    probe = make_probe(make_model(), learned={"supports_tool_use": True, "calls_shape": "object"})
    owner_client.post(f"/probes/{probe.pk}/adopt/")
    Preset.objects.filter(builtin=False).update(archived_at=timezone.now())

    owner_client.post(f"/probes/{probe.pk}/adopt/")

    assert Preset.objects.get(builtin=False).archived_at is None


def test_probe_adopt_button_without_proposal_creates_no_preset(owner_client: Client) -> None:
    probe = make_probe(make_model(), learned={"supports_tool_use": True})

    owner_client.post(f"/probes/{probe.pk}/adopt/")

    assert not Preset.objects.filter(builtin=False).exists()


def test_model_page_shows_source_of_each_capability(owner_client: Client) -> None:
    model = make_model(capabilities={"supports_tool_use": True})
    make_probe(model, learned={"supports_tool_use": False, "text_format": "hermes"})

    shown = read_html(owner_client.get(f"/models/{model.pk}/"))

    assert "probed" in shown
    assert f"At most two minutes and {MAX_REQUESTS} small requests" in shown
    assert "declared by a person: <code>yes</code>" in shown
    assert "A probe found a call in the text format hermes." in shown


def test_compatibility_page_names_source_of_every_known_value(owner_client: Client) -> None:
    simulated_model = make_model("perfect", provider=make_provider("Simulated", kind="simulated"))
    make_probe(simulated_model, learned={"supports_tool_use": True})
    make_model("vendor/unknown", provider=make_provider("vLLM", template="vllm"))

    shown = read_html(owner_client.get("/compatibility/"))
    real, simulated = shown.split("· simulated", 1)

    assert "vendor/unknown" in real
    assert ">not probed</a>" in real
    assert "<code>structured_outputs, response_format</code>" in real
    assert "Declared for all these models by vLLM&#x27;s documentation" in real
    assert "Unknown for all models: Tool calls, " in real
    assert "perfect" in simulated
    assert "probed, " in simulated


def test_probe_all_button_requires_confirmation_of_paid_requests(owner_client: Client, settings: Settings) -> None:
    settings.CONFIRM_ABOVE_REQUESTS = 2 * MAX_REQUESTS
    provider = make_provider("Paid")
    for name in "abc":
        make_model(name, provider=provider)
    make_model("old", provider=provider, retired=True)

    asked = owner_client.post(f"/providers/{provider.pk}/probe/")
    assert f"up to {3 * MAX_REQUESTS} requests to Paid" in read_html(asked)
    assert owner_client.post(f"/providers/{provider.pk}/probe/", {"agreed": "9" * 5000}).status_code == 200
    assert not Probe.objects.exists()

    done = owner_client.post(f"/providers/{provider.pk}/probe/", {"agreed": str(3 * MAX_REQUESTS)})
    assert done.headers["Location"] == f"/compatibility/#provider-{provider.pk}"
    assert set(Probe.objects.values_list("model_name", "kind")) == {(name, "conformance") for name in "abc"}

    local = make_model("tiny", provider=make_provider("Local", kind="local"))
    settings.CONFIRM_ABOVE_REQUESTS = 1
    owner_client.post(f"/providers/{local.provider_id}/probe/")
    assert Probe.objects.filter(model=local).exists()
