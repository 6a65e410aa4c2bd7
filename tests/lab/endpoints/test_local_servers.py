"""Model servers on this machine are offered when they list their models, and only then."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache

from tests.factories import make_provider
from toolbench.lab.endpoints import local_servers
from toolbench.lab.endpoints.local_servers import get_detected_servers, scan_local_servers
from toolbench.lab.models import Provider
from toolbench.providers.scripted_server import ScriptedServer, error_reply
from toolbench.providers.scripted_server import json_reply as answers
from toolbench.providers.templates import lookup_template

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """A server that stands where Ollama usually listens; nothing else is looked for."""
    with ScriptedServer() as server:
        template = replace(lookup_template("ollama"), base_url=server.base_url)
        monkeypatch.setattr(local_servers, "load_templates", lambda: {"ollama": template})
        yield server


def models_found() -> list[int | None]:
    scan_local_servers()
    return [found.models for found in get_detected_servers(Provider.objects.all())]


def test_a_server_that_lists_models_is_offered_with_their_number(ollama: ScriptedServer) -> None:
    ollama.set_script(answers({"data": [{"id": "a"}, {"id": "b"}]}))
    assert models_found() == [2]
    assert [found.template.title for found in get_detected_servers(Provider.objects.all())] == ["Ollama"]


def test_a_server_that_answers_something_else_is_not_offered(ollama: ScriptedServer) -> None:
    ollama.set_script(error_reply(404, "no such page"))
    assert models_found() == [None]


def test_local_servers_are_asked_only_when_looked_for(ollama: ScriptedServer) -> None:
    ollama.set_script(answers({"data": []}), answers({"data": [{"id": "a"}]}))
    assert get_detected_servers(Provider.objects.all()) == ()
    assert ollama.seen == []
    assert models_found() == [0]
    assert [found.models for found in get_detected_servers(Provider.objects.all())] == [0]
    assert models_found() == [1]


def test_one_that_is_connected_already_is_named(ollama: ScriptedServer) -> None:
    ollama.set_script(answers({"data": []}))
    provider = make_provider("Ollama", template="ollama")
    scan_local_servers()
    assert [found.provider_id for found in get_detected_servers(Provider.objects.all())] == [provider.pk]
