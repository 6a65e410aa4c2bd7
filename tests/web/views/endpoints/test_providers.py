"""Pages of providers: connecting, editing, deleting, masking of secrets, budgets and rates."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, make_trial, make_trials
from tests.page_html import read_html
from tests.providers.company_network import Authority
from toolbench.lab import builtin_data
from toolbench.lab.models import AuditEntry, PacePoint, Probe, Provider, Run, SamplingProfile, Trial
from toolbench.providers.masking.spellings import MIN_SECRET_CHARS
from toolbench.providers.scripted_server import ScriptedServer, error_reply, json_reply
from toolbench.web.forms.providers import ProviderForm

pytestmark = pytest.mark.django_db


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as running:
        yield running


def test_provider_form_with_key_lists_and_adds_offered_models(owner_client: Client, server: ScriptedServer) -> None:
    server.set_script(json_reply({"data": [{"id": "m/one"}, {"id": "m/two"}]}))
    form = {"name": "Mine", "base_url": server.base_url, "key": "sk-secret"}
    response = owner_client.post("/providers/new/", form, follow=True)
    text = read_html(response)
    assert "m/one" in text
    assert "sk-secret" not in text
    sent = {name.lower(): value for name, value in server.seen[0].headers.items()}
    assert sent["authorization"] == "Bearer sk-secret"
    provider = Provider.objects.get(name="Mine")
    none = owner_client.post(f"/providers/{provider.pk}/models/", {})
    assert none.status_code == 422
    assert "No model was added" in read_html(none)
    owner_client.post(f"/providers/{provider.pk}/models/", {"name": ["m/one"], "more": "m/three\n\n"})
    assert set(provider.models.values_list("name", flat=True)) == {"m/one", "m/three"}


@pytest.mark.parametrize("page", ["/", "/providers/new/"])
def test_provider_forms_state_minimum_length_of_masked_keys(owner_client: Client, page: str) -> None:
    text = read_html(owner_client.get(page))
    assert re.search(rf"fewer than {MIN_SECRET_CHARS} characters[^<]*masked in headers only", text)


def test_models_page_with_wrong_key_shows_status_of_provider(owner_client: Client, server: ScriptedServer) -> None:
    server.set_script(error_reply(401, "Incorrect API key provided"))
    provider = make_provider("Mine", base_url=server.base_url)
    text = read_html(owner_client.post(f"/providers/{provider.pk}/models/", {"ask": "1"}, follow=True))
    assert "HTTP 401: Incorrect API key provided" in text
    assert "The saved connection and all results stay unchanged" in text


def test_provider_form_fills_blank_fields_from_template(owner_client: Client) -> None:
    response = owner_client.post("/providers/new/", {"template": "groq", "key_env": "GROQ_API_KEY"})
    provider = Provider.objects.get(template="groq")
    assert response.headers["location"] == f"/providers/{provider.pk}/models/"
    assert (provider.name, provider.base_url, provider.key_env) == (
        "Groq",
        "https://api.groq.com/openai",
        "GROQ_API_KEY",
    )


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"name": "", "base_url": ""}, "Enter the address, such as"),
        ({"name": "a", "base_url": "ftp://x"}, "http:// or https://"),
        ({"name": "a", "base_url": "https://[::1"}, "http:// or https://"),
        ({"name": "Taken", "base_url": "https://x.test"}, "a provider named Taken already"),
        ({"name": "a", "base_url": "https://x.test", "headers": "{"}, "This is not JSON"),
        ({"name": "a", "base_url": "https://x.test", "headers": "[" * 100_000}, "This is not JSON"),
        ({"name": "a", "base_url": "https://x.test", "headers": '{"a": 1}'}, "object of texts"),
        (
            {"name": "a", "base_url": "https://x.test", "option_defaults": '{"model": "x"}'},
            "remove them here",
        ),
        ({"name": "a", "base_url": "https://x.test", "concurrency": "0"}, "1 to 1000 trials in flight"),
        ({"name": "a", "base_url": "https://x.test", "concurrency": "9" * 30}, "1 to 1000 trials in flight"),
        ({"name": "a", "base_url": "https://x.test", "read_seconds": "nan"}, "number"),
        ({"name": "a", "base_url": "https://x.test", "template": "nope"}, "nope"),
    ],
)
def test_provider_form_explains_invalid_field(owner_client: Client, form: dict[str, str], sentence: str) -> None:
    make_provider("Taken")
    response = owner_client.post("/providers/new/", form)
    assert response.status_code == 422
    assert sentence in read_html(response)
    assert Provider.objects.count() == 1


@pytest.mark.parametrize(
    ("entered", "saved"),
    [
        ("127.0.0.1:9/v1", "http://127.0.0.1:9/v1"),
        ("localhost:9", "http://localhost:9"),
        ("api.example.com/v1", "https://api.example.com/v1"),
        ("http://api.example.com", "http://api.example.com"),
    ],
)
def test_provider_form_completes_address_without_scheme(entered: str, saved: str) -> None:
    form = ProviderForm({"name": "Mine", "base_url": entered})
    assert form.is_valid()
    assert form.build_connection().base_url == saved


def test_provider_form_refuses_key_with_new_variable(owner_client: Client) -> None:
    both = {"name": "Mine", "base_url": "http://127.0.0.1:9", "key": "sk-secret", "key_env": "MY_KEY"}
    refused = owner_client.post("/providers/new/", both)
    assert refused.status_code == 422
    assert "Enter the key or its variable, not both" in read_html(refused)
    assert not Provider.objects.filter(name="Mine").exists()
    provider = make_provider("Mine", key_source="environment", key_env="MY_KEY")
    owner_client.post(f"/providers/{provider.pk}/", both)  # a key instead of the stored variable
    provider.refresh_from_db()
    assert (provider.key_source, provider.key_env) == ("stored", "")


def test_provider_page_saves_key_and_lists_models_at_once(owner_client: Client, server: ScriptedServer) -> None:
    server.set_script(json_reply({"data": [{"id": "m/one"}]}))
    provider = make_provider("Mine", base_url=server.base_url)
    assert "Save and list its models" in read_html(owner_client.get(f"/providers/{provider.pk}/"))
    form = {"name": "Mine", "base_url": server.base_url, "key": "sk-secret", "list": "1"}
    answer = owner_client.post(f"/providers/{provider.pk}/", form)
    assert answer.headers["Location"] == f"/providers/{provider.pk}/models/"
    assert "m/one" in read_html(owner_client.get(f"/providers/{provider.pk}/models/"))
    make_model(provider=provider)
    assert "Save and list its models" not in read_html(owner_client.get(f"/providers/{provider.pk}/"))


def test_provider_form_with_blank_key_keeps_stored_key(owner_client: Client) -> None:
    form = {"name": "Mine", "base_url": "https://x.test", "key": "sk-secret"}
    owner_client.post("/providers/new/", form)
    provider = Provider.objects.get(name="Mine")
    before = bytes(provider.key_encrypted or b"")
    owner_client.post(f"/providers/{provider.pk}/", form | {"key": "", "name": "Renamed"})
    provider.refresh_from_db()
    assert (provider.name, bytes(provider.key_encrypted or b"")) == ("Renamed", before)


def test_provider_form_with_other_host_requires_key_again_or_removal(owner_client: Client) -> None:
    owner_client.post("/providers/new/", {"name": "Mine", "base_url": "https://x.test", "key": "sk-secret"})
    provider = Provider.objects.get(name="Mine")
    address, form = f"/providers/{provider.pk}/", {"name": "Mine", "base_url": "https://evil.test"}
    refused = owner_client.post(address, form)
    assert (refused.status_code, "enter the key for it" in read_html(refused)) == (422, True)
    assert "Remove the stored key" in read_html(owner_client.get(address))
    owner_client.post(address, form | {"remove_key": "on"})
    provider.refresh_from_db()
    assert (provider.base_url, provider.key_encrypted, provider.key_source) == ("https://evil.test", None, "none")
    assert "Remove the stored key" not in read_html(owner_client.get(address))


def test_provider_form_hides_header_values_and_removes_names(owner_client: Client) -> None:
    form = {"name": "Mine", "base_url": "https://x.test"}
    owner_client.post("/providers/new/", form | {"headers": '{"X-Auth": "planted", "X-Title": "Mine"}'})
    provider = Provider.objects.get(name="Mine")
    address = f"/providers/{provider.pk}/"
    text = read_html(owner_client.get(address))
    assert ("X-Auth" in text, "planted" in text) == (True, False)
    refused = owner_client.post(address, form | {"headers": '{"X-Auth": "planted"}', "concurrency": "0"})
    assert (refused.status_code, "planted" in read_html(refused)) == (422, False)
    owner_client.post(address, form | {"remove_headers": ["X-Auth"]})
    provider.refresh_from_db()
    assert provider.header_names == ["X-Title"]
    assert "X-Auth" not in read_html(owner_client.get(address))


def test_providers_page_reports_headers_without_key_file(
    owner_client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    form = {"name": "Mine", "base_url": "https://x.test", "headers": '{"X-Auth": "planted"}'}
    owner_client.post("/providers/new/", form)
    monkeypatch.setattr(settings, "KEY_FILE", tmp_path / "another.key")
    assert "Enter the extra headers of Mine again" in read_html(owner_client.get("/providers/"))


def test_provider_delete_page_confirms_and_keeps_runs(owner_client: Client) -> None:
    model = make_model()
    config = make_config(make_run(), model)
    make_trials(make_cell(config), **{"pass": 3})
    address = f"/providers/{model.provider_id}/delete/"
    assert "1 run that used it is kept" in read_html(owner_client.get(address))
    owner_client.post(address)
    assert not Provider.objects.exists()
    assert Run.objects.get().trials.count() == 3
    assert "vendor/model-a" in read_html(owner_client.get("/matrix/export.csv?scope=real"))


def test_provider_page_of_builtin_provider_has_no_form(owner_client: Client) -> None:
    builtin_data.load_builtin_data()
    local = Provider.objects.get(service="local-own")
    assert "is part of Toolbench" in read_html(owner_client.get(f"/providers/{local.pk}/"))
    form = {"name": "Mine", "base_url": "https://api.openai.com", "key": "sk-1"}
    assert owner_client.post(f"/providers/{local.pk}/", form).status_code == 422
    assert Provider.objects.get(service="local-own").base_url == ""
    refused = owner_client.post(f"/providers/{local.pk}/delete/", follow=True)
    assert f"{local} comes with Toolbench. Connect another provider instead." in read_html(refused)
    assert Provider.objects.filter(pk=local.pk).exists()


def test_provider_page_of_unknown_provider_is_404(owner_client: Client) -> None:
    response = owner_client.get("/providers/999/")
    assert response.status_code == 404
    assert "There is nothing at this address" in read_html(response)


def test_provider_form_connects_anthropic_and_hides_key(owner_client: Client, server: ScriptedServer) -> None:
    server.set_script(json_reply({"data": [{"id": "claude-test", "type": "model"}], "has_more": False}))
    form = {"template": "anthropic", "base_url": server.base_url, "key": "sk-ant-secret"}
    text = read_html(owner_client.post("/providers/new/", form, follow=True))
    assert ("claude-test" in text, "sk-ant-secret" in text) == (True, False)
    provider = Provider.objects.get(template="anthropic")
    assert (provider.name, provider.wire, provider.kind) == ("Anthropic", "anthropic", "anthropic")
    assert "Messages" in read_html(owner_client.get("/providers/"))
    owner_client.post(f"/providers/{provider.pk}/", form | {"wire": "chat", "name": "Anthropic"})
    provider.refresh_from_db()
    assert (provider.wire, provider.kind) == ("chat", "openai")


def test_provider_form_sets_wire_format_of_any_address(owner_client: Client) -> None:
    form = {"name": "Gateway", "base_url": "https://x.test", "wire": "anthropic"}
    owner_client.post("/providers/new/", form)
    assert Provider.objects.get(name="Gateway").wire == "anthropic"
    assert owner_client.post("/providers/new/", form | {"name": "b", "wire": "smoke"}).status_code == 422


def test_provider_form_does_not_repeat_refused_address(owner_client: Client) -> None:
    for address in (
        "https://x.test/sk-planted-key/v1",
        "https://u:planted@x.test",
        "https://x.test/0planted0?a=planted",
    ):
        answer = owner_client.post("/providers/new/", {"name": "a", "base_url": address, "key": "0planted0"})

        assert answer.status_code == 422
        assert "is shown and stored" in read_html(answer)
        assert "planted" not in read_html(answer)


def test_provider_pages_mask_key_in_stored_address(owner_client: Client) -> None:
    provider = make_provider("Old", base_url="https://u:planted@x.test/sk-planted-key/v1?k=planted")
    model = make_model(provider=provider)
    config = make_config(make_run(), model)
    Probe.objects.create(model=model, provider=provider, kind="first_use", state="done", base_url=provider.base_url)
    probe = Probe.objects.get()
    paths = ["/providers/", f"/providers/{provider.pk}/", f"/probes/{probe.pk}/", f"/decide/settings/{config.pk}/"]

    for path in paths:
        text = read_html(owner_client.get(path))
        assert "planted" not in text, path
        assert "x.test/**************/v1" in text, path


def test_provider_form_refuses_masked_address(owner_client: Client) -> None:
    provider = make_provider("Old", base_url="https://x.test/sk-planted-key/v1")
    form = {"name": "Renamed", "base_url": "https://x.test/**************/v1"}

    answer = owner_client.post(f"/providers/{provider.pk}/", form)

    assert (answer.status_code, "a probable key in its path" in read_html(answer)) == (422, True)
    provider.refresh_from_db()
    assert (provider.name, provider.base_url) == ("Old", "https://x.test/sk-planted-key/v1")


def test_provider_page_masks_key_in_stored_prefix(owner_client: Client) -> None:
    provider = make_provider("Old", base_url="https://x.test", api_prefix="/sk-planted-0123456789/v1")
    text = read_html(owner_client.get(f"/providers/{provider.pk}/"))
    assert "planted" not in text
    assert f'value="/{"*" * len("sk-planted-0123456789")}/v1"' in text


def test_provider_pages_never_show_network_secrets(owner_client: Client) -> None:
    company = Authority()
    certificate, key = company.issue()
    fields = {
        "name": "Behind",
        "base_url": "https://api.example.test",
        "proxy_url": "http://ana:hidden-1234@proxy.test:3128",
        "ca_pem": company.pem,
        "client_certificate": certificate,
        "client_key": key,
        "query": "api-version=1",
    }
    refused = owner_client.post(
        "/providers/new/", fields | {"key_header": "a b", "client_certificate": certificate + key}
    )
    assert refused.status_code == 422
    owner_client.post("/providers/new/", fields)
    provider = Provider.objects.get(name="Behind")
    shown = read_html(owner_client.get(f"/providers/{provider.pk}/"))
    for page in (read_html(refused), shown):
        assert "hidden-1234" not in page
        assert "PRIVATE KEY-----" not in page
        assert key.splitlines()[1] not in page
        assert 'value="http://proxy.test:3128"' in page
    assert certificate.splitlines()[1] in shown
    assert "Remove the stored user and password" in shown
    assert AuditEntry.objects.filter(action="key_entered", subject="provider Behind").exists()


def test_provider_form_azure_template_fills_path_version_and_header(owner_client: Client) -> None:
    fields = {"template": "azure", "key": "azure-key-1"}
    missing = owner_client.post("/providers/new/", fields)
    assert "Enter the address, such as" in read_html(missing)
    owner_client.post("/providers/new/", fields | {"base_url": "https://name.openai.azure.com"})
    provider = Provider.objects.get(template="azure")
    assert (provider.api_prefix, provider.query, provider.key_header) == (
        "/openai/deployments/{model}", "api-version=2024-10-21", "api-key",
    )  # fmt: skip


def test_provider_form_saved_again_keeps_blank_prefix(owner_client: Client) -> None:
    owner_client.post("/providers/new/", {"template": "deepseek", "key": "sk-1"})
    provider = Provider.objects.get(template="deepseek")
    shown = {"template": "deepseek", "name": "DeepSeek", "base_url": provider.base_url, "api_prefix": ""}
    for base_url in (provider.base_url, f"{provider.base_url}/beta"):
        owner_client.post(f"/providers/{provider.pk}/", shown | {"base_url": base_url, "concurrency": "3"})
        provider.refresh_from_db()
        assert (provider.base_url, provider.api_prefix, provider.concurrency) == (base_url, "", 3)


def test_provider_form_saves_shows_and_removes_budget_per_month(owner_client: Client) -> None:
    provider = make_provider()
    path = f"/providers/{provider.pk}/"
    form = {"name": provider.name, "base_url": provider.base_url, "api_prefix": "/v1"}
    owner_client.post(path, form | {"budget_per_month": "12.5"})
    assert Provider.objects.get(pk=provider.pk).budget_per_month == 12.5
    text = read_html(owner_client.get(path))
    assert 'name="budget_per_month" value="12.5"' in text
    assert re.search(r"Spent in \w+ \d{4} \(UTC\): \$0.00 in 0 trials", text)
    owner_client.post(path, form | {"budget_per_month": ""})
    assert Provider.objects.get(pk=provider.pk).budget_per_month is None


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        *((value, "Enter 0.01 to 1,000,000 dollars") for value in ("0", "-1", "0.001", "1e9")),
        *((value, "Enter a number") for value in ("nan", "inf", "many", "1e999")),
    ],
)
def test_provider_form_refuses_invalid_budget_and_changes_nothing(
    owner_client: Client, value: str, sentence: str
) -> None:
    provider = make_provider(budget_per_month=7.0)
    form = {"name": provider.name, "base_url": provider.base_url, "api_prefix": "/v1", "budget_per_month": value}
    response = owner_client.post(f"/providers/{provider.pk}/", form)
    assert response.status_code == 422
    assert sentence in read_html(response)
    assert Provider.objects.get(pk=provider.pk).budget_per_month == 7.0


def test_provider_and_launch_pages_report_spent_budget(owner_client: Client) -> None:
    model = make_model(provider=make_provider(budget_per_month=0.5))
    SamplingProfile.objects.get_or_create(name="default")
    trial = make_trial(make_cell(make_config(make_run(), model)), "pass", cost=0.75)
    Trial.objects.filter(pk=trial.pk).update(finished_at=timezone.now())
    plan = f"/runs/new/?models={model.pk}&scenarios=happy_path"
    for path in ("/providers/", f"/providers/{model.provider_id}/", plan):
        assert "Example has spent $0.7500 of its budget of $0.5000" in read_html(owner_client.get(path))
    fields = {"models": model.pk, "scenarios": "happy_path", "profiles": "default", "strategies": "production"}
    fields |= {"methods": "native", "trials": "3", "instance_kind": "parity", "tool_use_mode": "enforced"}
    refused = owner_client.post("/runs/new/", fields | {"tool_failure_policy": "fatal"})
    assert "Raise the budget on the provider&#x27;s page" in refused.content.decode()
    assert Run.objects.count() == 1


def test_provider_page_shows_rate_control_as_chart_and_table(owner_client: Client) -> None:
    provider = make_provider(base_url="http://127.0.0.1:9", adaptive=True)
    address = f"/providers/{provider.pk}/"
    assert "Charts appear here if trials of this provider ran" in read_html(owner_client.get(address))
    for age in (20, 10):
        at = timezone.now() - timedelta(seconds=age)
        figures = {"seconds": 10, "concurrency": 37, "in_flight": 36, "answers": 98, "rejections": 1}
        PacePoint.objects.create(provider=provider, at=at, **figures)
    text = read_html(owner_client.get(address))
    assert "polyline" in text
    assert "The same as a table" in text
    assert "2 of 198" in text


def test_provider_form_saves_rate_settings_and_explains_bad_ones(owner_client: Client) -> None:
    provider = make_provider("Mine", base_url="http://127.0.0.1:9")
    form = {"name": "Mine", "base_url": provider.base_url, "adaptive": "on", "requests_per_minute": "600"}
    owner_client.post(f"/providers/{provider.pk}/", form | {"tokens_per_minute": "90000"})
    provider.refresh_from_db()
    assert (provider.adaptive, provider.requests_per_minute, provider.tokens_per_minute) == (True, 600, 90_000)
    refused = owner_client.post(f"/providers/{provider.pk}/", form | {"tokens_per_minute": "0"})
    assert refused.status_code == 422
    assert "or leave the field empty for no limit" in read_html(refused)
