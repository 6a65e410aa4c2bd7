"""Proxy, certificates and query of a provider: stored secrets, errors by field, and requests that use them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from tests.providers.company_network import Authority, ConnectProxy
from toolbench.lab.credentials.keys import KeyUnavailableError, read_network_access
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.endpoints import connect, offered_models
from toolbench.lab.endpoints.connect import ConnectionSettings, ConnectionSettingsError
from toolbench.lab.endpoints.network import KEY_IN_CERTIFICATE, REROUTED_KEY_ERROR, NetworkSettings
from toolbench.lab.models import Provider
from toolbench.lab.worker.trial_plan import load_provider_access
from toolbench.providers.scripted_server import ScriptedServer, json_reply

pytestmark = pytest.mark.django_db(transaction=True)
PASSWORD = "s3cret-of-the-proxy"
PROXY = f"http://ana:{PASSWORD}@proxy.test:3128"
COMPANY = Authority()
CERTIFICATE, KEY = COMPANY.issue()
CONNECTION = ConnectionSettings("Mine", "https://api.example.test", key="sk-12345678")
FULL = NetworkSettings(PROXY, False, COMPANY.pem, CERTIFICATE, KEY, "api-version=1", "api-key")


def connect_with(network: NetworkSettings) -> Provider:
    provider = connect.connect_provider(replace(CONNECTION, network=network))
    provider.refresh_from_db()
    return provider


def edit(provider: Provider, network: NetworkSettings, *, key: str = "") -> Provider:
    edited = connect.edit_provider(provider.pk, replace(CONNECTION, network=network, key=key))
    edited.refresh_from_db()
    return edited


def test_connect_provider_encrypts_network_secrets_and_uses_them() -> None:
    provider = connect_with(FULL)
    assert provider.proxy_url == "http://proxy.test:3128"
    row = repr(Provider.objects.values().get(pk=provider.pk))
    assert PASSWORD not in row
    assert KEY.splitlines()[1] not in row
    endpoint = load_provider_access(provider).endpoint
    assert endpoint.network.proxy_login == f"ana:{PASSWORD}"
    assert endpoint.network.certificate_key == KEY.strip()
    assert endpoint.network.ca == COMPANY.pem.strip()
    assert (endpoint.query, endpoint.key_header) == ("api-version=1", "api-key")
    assert PASSWORD not in load_known_secrets().masker.mask_text(f"the login is ana:{PASSWORD}")


def test_edit_provider_blank_network_secrets_keep_stored_ones() -> None:
    resubmitted = replace(FULL, proxy="http://proxy.test:3128", client_key="")
    network = read_network_access(edit(connect_with(FULL), resubmitted))
    assert (network.proxy_login, network.certificate_key) == (f"ana:{PASSWORD}", KEY.strip())


def test_edit_provider_equal_network_secrets_keep_stored_bytes() -> None:
    provider = connect_with(FULL)
    stored = bytes(provider.network_encrypted or b"")
    assert bytes(edit(provider, FULL).network_encrypted or b"") == stored
    resubmitted = replace(FULL, proxy="http://proxy.test:3128", client_key="")
    assert bytes(edit(provider, resubmitted).network_encrypted or b"") == stored


def test_edit_provider_new_proxy_or_certificate_drops_its_secret() -> None:
    provider = connect_with(FULL)
    moved = edit(provider, replace(FULL, proxy="http://other.test:3128", client_key=""))
    assert read_network_access(moved).proxy_login == ""
    with pytest.raises(ConnectionSettingsError, match="does not belong to the client certificate"):
        edit(provider, replace(FULL, client_certificate=COMPANY.issue()[0], client_key=""))
    without = edit(provider, NetworkSettings())
    assert without.network_encrypted is None


def test_edit_provider_with_remove_proxy_login_deletes_login() -> None:
    resubmitted = replace(FULL, proxy="http://proxy.test:3128", remove_proxy_login=True, client_key="")
    network = read_network_access(edit(connect_with(FULL), resubmitted))
    assert (network.proxy, network.proxy_login, network.certificate_key) == ("http://proxy.test:3128", "", KEY.strip())


@pytest.mark.parametrize(
    ("field", "changed", "message"),
    [
        ("proxy_url", {"proxy": "proxy.test"}, "A proxy is an address such as"),
        ("ca_pem", {"ca": "MIIB"}, "No certificate in PEM can be read here"),
        ("ca_pem", {"ca": COMPANY.pem + KEY}, KEY_IN_CERTIFICATE),
        ("client_certificate", {"client_certificate": "x"}, "No certificate in PEM can be read here"),
        ("client_certificate", {"client_certificate": CERTIFICATE + KEY}, KEY_IN_CERTIFICATE),
        ("client_key", {"client_key": "x"}, "No private key in PEM can be read here"),
        ("client_key", {"client_key": ""}, "Enter the private key of the client certificate."),
        ("client_key", {"client_certificate": ""}, "Enter the client certificate of this private key."),
        ("client_key", {"client_key": COMPANY.issue()[1]}, "does not belong to the client certificate"),
        ("query", {"query": "api-version"}, "Enter pairs such as"),
        ("query", {"query": "a=1 2"}, "Enter pairs such as"),
        ("query", {"query": "a=1#b"}, "Enter pairs such as"),
        ("query", {"query": "key=sk-proj-0123456789abcdef"}, "a key cannot be one of them"),
        ("key_header", {"key_header": "api key"}, "letters, digits and hyphens"),
        ("key_header", {"key_header": "Host"}, "Toolbench sets the header Host itself"),
    ],
)
def test_connect_provider_malformed_network_field_has_its_message(
    field: str, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConnectionSettingsError) as refused:
        connect.connect_provider(replace(CONNECTION, network=replace(FULL, **changed)))
    (errors,) = refused.value.errors.values()
    assert list(refused.value.errors) == [field]
    assert message in errors[0]
    assert not Provider.objects.filter(name="Mine").exists()


def test_edit_provider_new_ca_needs_key_again() -> None:
    provider = connect_with(NetworkSettings())
    with pytest.raises(ConnectionSettingsError) as refused:
        edit(provider, NetworkSettings(ca=COMPANY.pem))
    assert refused.value.errors == {"key": [REROUTED_KEY_ERROR]}
    edited = edit(provider, NetworkSettings(ca=COMPANY.pem), key="sk-12345678")
    assert edit(edited, NetworkSettings(ca=COMPANY.pem, proxy="http://proxy.test:1")).ca_pem == COMPANY.pem.strip()


def test_edit_provider_new_proxy_of_plain_address_needs_headers_again() -> None:
    plain = replace(CONNECTION, base_url="http://api.example.test", key="", headers={"X-Token": "token-12345"})
    provider = connect.connect_provider(plain)
    with pytest.raises(ConnectionSettingsError, match="another machine may read X-Token"):
        connect.edit_provider(provider.pk, replace(plain, headers={}, network=NetworkSettings("http://proxy.test:1")))


@pytest.mark.parametrize("scheme", ["http", "HTTP"])
def test_edit_provider_new_proxy_of_plain_address_needs_key_again(scheme: str) -> None:
    plain = replace(CONNECTION, base_url=f"{scheme}://api.example.test", key="sk-12345678")
    provider = connect.connect_provider(plain)
    with pytest.raises(ConnectionSettingsError) as refused:
        connect.edit_provider(provider.pk, replace(plain, key="", network=NetworkSettings("http://proxy.test:1")))
    assert refused.value.errors == {"key": [REROUTED_KEY_ERROR]}


def test_edit_provider_unreadable_network_secrets_are_named_by_field(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    provider = connect_with(FULL)
    monkeypatch.setattr(settings, "KEY_FILE", tmp_path / "another")
    with pytest.raises(KeyUnavailableError, match="login of the proxy and the private key"):
        read_network_access(provider)
    with pytest.raises(ConnectionSettingsError) as refused:
        edit(provider, replace(FULL, proxy="http://proxy.test:3128", client_key=""), key="sk-12345678")
    assert set(refused.value.errors) == {"proxy_url", "client_key"}
    assert read_network_access(edit(provider, FULL, key="sk-12345678")).certificate_key == KEY.strip()


def test_list_provider_models_uses_proxy_and_certificates(tmp_path: Path) -> None:
    context = COMPANY.build_server_context(tmp_path, clients=COMPANY)
    with (
        ScriptedServer([json_reply({"data": [{"id": "gpt"}]})], tls=context) as server,
        ConnectProxy(login=f"ana:{PASSWORD}") as proxy,
    ):
        network = replace(FULL, proxy=proxy.url.replace("//", f"//ana:{PASSWORD}@"))
        provider = connect.connect_provider(replace(CONNECTION, base_url=server.base_url, network=network))
        assert offered_models.list_provider_models(provider.pk) == ("gpt",)
        assert server.seen[0].headers["api-key"] == "sk-12345678"
        assert server.seen[0].path == "/v1/models?api-version=1"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ca": ""}, "CA file: none is entered"),
        ({"client_certificate": "", "client_key": ""}, "Client certificate: the server (requires|may require) one"),
        ({"proxy": "{proxy}"}, "asks for a user and a password"),
    ],
)
def test_list_provider_models_failure_names_network_setting(
    tmp_path: Path, changed: dict[str, str], message: str
) -> None:
    context = COMPANY.build_server_context(tmp_path, clients=COMPANY)
    with ScriptedServer([], tls=context) as server, ConnectProxy(login="ana:other") as proxy:
        values: dict[str, Any] = {name: text.format(proxy=proxy.url) for name, text in changed.items()}
        network = replace(FULL, **({"proxy": ""} | values))
        provider = connect.connect_provider(replace(CONNECTION, base_url=server.base_url, network=network))
        with pytest.raises(offered_models.ModelListError, match=message):
            offered_models.list_provider_models(provider.pk)


def test_list_provider_models_of_deployments_asks_for_names() -> None:
    provider = connect.connect_provider(replace(CONNECTION, api_prefix="/openai/deployments/{model}"))
    with pytest.raises(offered_models.ModelListError, match="enter the names of your deployments"):
        offered_models.list_provider_models(provider.pk)
