"""Scan for model servers on this machine."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache

from tests.factories import make_provider
from toolbench.lab.endpoints import local_servers
from toolbench.lab.endpoints.local_servers import get_detected_servers, scan_local_servers
from toolbench.lab.models import Provider
from toolbench.providers.scripted_server import ScriptedServer, error_reply, json_reply
from toolbench.providers.templates import lookup_template

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """Yield a server at the address of Ollama, the only template that a scan looks for."""
    with ScriptedServer() as server:
        template = replace(lookup_template("ollama"), base_url=server.base_url)
        monkeypatch.setattr(local_servers, "load_templates", lambda: {"ollama": template})
        yield server


def scan_model_counts() -> list[int | None]:
    scan_local_servers()
    return [found.model_count for found in get_detected_servers(Provider.objects.all())]


def test_scan_local_servers_offers_server_with_number_of_models(ollama: ScriptedServer) -> None:
    ollama.set_script(json_reply({"data": [{"id": "a"}, {"id": "b"}]}))
    assert scan_model_counts() == [2]
    assert [found.template.title for found in get_detected_servers(Provider.objects.all())] == ["Ollama"]


def test_scan_local_servers_other_answer_has_no_number_of_models(ollama: ScriptedServer) -> None:
    ollama.set_script(error_reply(404, "no such page"))
    assert scan_model_counts() == [None]


def test_get_detected_servers_sends_no_request(ollama: ScriptedServer) -> None:
    ollama.set_script(json_reply({"data": []}), json_reply({"data": [{"id": "a"}]}))
    assert get_detected_servers(Provider.objects.all()) == ()
    assert ollama.seen == []
    assert scan_model_counts() == [0]
    assert [found.model_count for found in get_detected_servers(Provider.objects.all())] == [0]
    assert scan_model_counts() == [1]


def test_get_detected_servers_names_connected_provider(ollama: ScriptedServer) -> None:
    ollama.set_script(json_reply({"data": []}))
    provider = make_provider("Ollama", template="ollama")
    scan_local_servers()
    assert [found.provider_id for found in get_detected_servers(Provider.objects.all())] == [provider.pk]
