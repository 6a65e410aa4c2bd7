"""The list of models that a provider offers: requested by a user, stored, discarded with the address."""

from dataclasses import replace

import pytest
from django.test import Client

from tests.factories import make_model, make_provider
from tests.page_html import read_html
from toolbench.lab.endpoints import connect
from toolbench.lab.endpoints.connect import ConnectionSettings
from toolbench.lab.endpoints.network import NetworkSettings
from toolbench.lab.endpoints.offered_models import add_models, get_offered_models, request_models
from toolbench.providers.scripted_server import ScriptedServer, error_reply, json_reply

pytestmark = pytest.mark.django_db
LISTED = json_reply({"data": [{"id": "m/one"}, {"id": "m/two"}]})


def test_request_models_without_answer_stores_error() -> None:
    provider = make_provider(base_url="http://127.0.0.1:9")
    request_models(provider.pk)
    offer = get_offered_models(provider.pk)
    assert offer.error
    assert (offer.models, offer.total) == ((), 0)


UNPRINTABLE_NAMES = ["m/\ud800", "m/\0a", "m/\x1b[31m", "m/\u202ea"]


def test_offered_models_and_add_models_ignore_unprintable_names() -> None:
    with ScriptedServer([json_reply({"data": [{"id": name} for name in ["m/ü", *UNPRINTABLE_NAMES]]})]) as server:
        provider = make_provider(base_url=server.base_url)
        request_models(provider.pk)
    assert [model.name for model in get_offered_models(provider.pk).models] == ["m/ü"]
    assert add_models(provider.pk, ["m/ü", *UNPRINTABLE_NAMES]) == 1


def test_models_page_shows_replacement_of_lone_surrogate_in_error(owner_client: Client) -> None:
    with ScriptedServer([error_reply(401, "No key \ud83d")]) as server:
        provider = make_provider(base_url=server.base_url)
        request_models(provider.pk)
    response = owner_client.get(f"/providers/{provider.pk}/models/")
    assert response.status_code == 200
    assert "No key ?" in read_html(response)


def test_get_offered_models_reads_last_list_without_request() -> None:
    with ScriptedServer([LISTED, json_reply({"data": [{"id": "m/new"}]})]) as server:
        provider = make_provider(base_url=server.base_url)
        make_model("m/two", provider=provider)
        make_model("m/old", provider=provider, retired=True)
        assert get_offered_models(provider.pk).listed_at is None
        assert get_offered_models(provider.pk).added_count == 1
        assert server.seen == []

        request_models(provider.pk)

        assert [(model.name, model.is_added) for model in get_offered_models(provider.pk).models] == [
            ("m/one", False),
            ("m/two", True),
        ]
        found = get_offered_models(provider.pk, "TWO")
        assert ([model.name for model in found.models], found.total, found.added_count) == (["m/two"], 2, 1)
        assert len(server.seen) == 1
        request_models(provider.pk)
        assert [model.name for model in get_offered_models(provider.pk).models] == ["m/new"]


def test_edit_provider_other_address_discards_offered_models() -> None:
    with ScriptedServer([LISTED]) as server:
        provider = connect.connect_provider(ConnectionSettings("Mine", server.base_url))
        request_models(provider.pk)
        assert get_offered_models(provider.pk).total == 2

        connect.edit_provider(provider.pk, ConnectionSettings("Mine", "http://127.0.0.1:9"))

        assert get_offered_models(provider.pk).listed_at is None


def test_edit_provider_other_key_discards_offered_models() -> None:
    with ScriptedServer([LISTED]) as server:
        provider = connect.connect_provider(ConnectionSettings("Mine", server.base_url, key="key-of-the-first-account"))
        request_models(provider.pk)
        assert get_offered_models(provider.pk).total == 2

        settings = ConnectionSettings("Mine", server.base_url, key="key-of-the-second-account")
        connect.edit_provider(provider.pk, settings)

        assert get_offered_models(provider.pk).listed_at is None


def test_edit_provider_other_name_keeps_offered_models() -> None:
    """Key and proxy login stay blank in the form, which keeps them."""
    with ScriptedServer([LISTED]) as server:
        network = NetworkSettings("http://ana:secret-of-the-proxy@127.0.0.1:9")
        settings = ConnectionSettings("Mine", server.base_url, key="key-of-the-account", network=network)
        provider = connect.connect_provider(settings)
        request_models(provider.pk)
        listed_at = get_offered_models(provider.pk).listed_at
        assert listed_at is not None
        renamed = replace(settings, name="Other", key="", network=NetworkSettings("http://127.0.0.1:9"))
        connect.edit_provider(provider.pk, renamed)
        assert get_offered_models(provider.pk).listed_at == listed_at

        connect.edit_provider(provider.pk, replace(renamed, network=NetworkSettings()))
        assert get_offered_models(provider.pk).listed_at is None
