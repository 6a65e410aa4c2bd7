"""Model servers on this machine are offered when they list their models, and only then."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from django.core.cache import cache

from tests.factories import make_provider
from toolbench.lab.connections import local_servers
from toolbench.lab.connections.local_servers import find_local_servers
from toolbench.providers.scripted import ScriptedProvider, fails
from toolbench.providers.scripted import json_answer as answers
from toolbench.providers.templates import find_template

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_cache() -> Iterator[None]:
    cache.clear()
    yield
    cache.clear()


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedProvider]:
    """A server that stands where Ollama usually listens; nothing else is looked for."""
    with ScriptedProvider() as server:
        template = replace(find_template("ollama"), base_url=server.base_url)
        monkeypatch.setattr(local_servers, "all_templates", lambda: {"ollama": template})
        yield server


def test_a_server_that_lists_models_is_offered_with_their_number(ollama: ScriptedProvider) -> None:
    ollama.plays(answers({"data": [{"id": "a"}, {"id": "b"}]}))
    assert [(found.template.title, found.models) for found in find_local_servers()] == [("Ollama", 2)]


def test_a_server_that_answers_something_else_is_not_offered(ollama: ScriptedProvider) -> None:
    ollama.plays(fails(404, "no such page"))
    assert [found.models for found in find_local_servers()] == [None]


def test_the_network_is_asked_again_only_when_told_to(ollama: ScriptedProvider) -> None:
    ollama.plays(answers({"data": []}), answers({"data": [{"id": "a"}]}))
    assert [found.models for found in find_local_servers()] == [0]
    assert [found.models for found in find_local_servers()] == [0]
    assert [found.models for found in find_local_servers(again=True)] == [1]


def test_one_that_is_connected_already_is_named(ollama: ScriptedProvider) -> None:
    ollama.plays(answers({"data": []}))
    provider = make_provider("Ollama", template="ollama")
    assert [found.provider_id for found in find_local_servers()] == [provider.pk]
