"""The list that a provider gives of its models: asked for by a person, kept, and forgotten with the address."""

import pytest

from tests.factories import make_model, make_provider
from toolbench.lab.endpoints import connect
from toolbench.lab.endpoints.connect import Connection
from toolbench.lab.endpoints.offered_models import ask_for_models, get_offer
from toolbench.providers.scripted_server import ScriptedProvider, json_answer

pytestmark = pytest.mark.django_db
LISTED = json_answer({"data": [{"id": "m/one"}, {"id": "m/two"}]})


def test_provider_that_does_not_answer_leaves_a_sentence() -> None:
    provider = make_provider(base_url="http://127.0.0.1:9")
    ask_for_models(provider.pk)
    offer = get_offer(provider.pk)
    assert offer.trouble
    assert (offer.models, offer.total) == ((), 0)


def test_offer_reads_the_last_list_and_sends_nothing() -> None:
    with ScriptedProvider([LISTED, json_answer({"data": [{"id": "m/new"}]})]) as server:
        provider = make_provider(base_url=server.base_url)
        make_model("m/two", provider=provider)
        assert get_offer(provider.pk).listed_at is None
        assert server.seen == []

        ask_for_models(provider.pk)

        assert [(model.name, model.there) for model in get_offer(provider.pk).models] == [
            ("m/one", False),
            ("m/two", True),
        ]
        found = get_offer(provider.pk, "TWO")
        assert ([model.name for model in found.models], found.total) == (["m/two"], 2)
        assert len(server.seen) == 1
        ask_for_models(provider.pk)
        assert [model.name for model in get_offer(provider.pk).models] == ["m/new"]


def test_list_of_another_address_is_forgotten() -> None:
    with ScriptedProvider([LISTED]) as server:
        provider = connect.connect(Connection("Mine", server.base_url))
        ask_for_models(provider.pk)
        assert get_offer(provider.pk).total == 2

        connect.edit(provider.pk, Connection("Mine", "http://127.0.0.1:9"))

        assert get_offer(provider.pk).listed_at is None
