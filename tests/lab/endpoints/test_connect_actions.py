from dataclasses import replace
from typing import Any

import pytest

from toolbench.lab.accounts.audit import Action
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.endpoints import connect
from toolbench.lab.endpoints.connect import ConnectionSettings, list_save_actions
from toolbench.lab.endpoints.network import NetworkSettings
from toolbench.lab.models import Provider

pytestmark = pytest.mark.django_db
PLAIN = ConnectionSettings("Mine", "https://api.example.test")
SECRET = replace(PLAIN, key="sk-1", headers={"X-Auth": "a"}, network=NetworkSettings("http://ana:pw@proxy.test:1"))
KEPT_PROXY = NetworkSettings("http://proxy.test:1")


def save(settings: ConnectionSettings, before: Provider | None = None) -> list[Action]:
    after = connect.edit_provider(before.pk, settings) if before else connect.connect_provider(settings)
    return list_save_actions(settings, before, after)


def test_save_actions_known_template_again_is_a_change() -> None:
    load_builtin_data()
    settings = ConnectionSettings("OpenRouter", "https://openrouter.ai/api", template="openrouter", key="sk-or")
    before = connect.find_connected(settings)
    actions = list_save_actions(settings, before, connect.connect_provider(settings))
    assert actions == [Action.CHANGED, Action.KEY_ENTERED]
    assert connect.find_connected(settings) is None


@pytest.mark.parametrize(
    "removal",
    [{"remove_key": True}, {"remove_headers": ("X-Auth",)}, {"network": NetworkSettings(remove_proxy_login=True)}],
)
def test_save_actions_removal_without_stored_secret_is_no_removal(removal: dict[str, Any]) -> None:
    assert save(PLAIN) == [Action.ADDED]
    before = Provider.objects.get(name="Mine")
    assert save(replace(PLAIN, **removal), before) == [Action.CHANGED]


@pytest.mark.parametrize(
    "removal",
    [
        {"remove_key": True},
        {"remove_headers": ("x-auth",)},
        {"network": replace(KEPT_PROXY, remove_proxy_login=True)},
    ],
)
def test_save_actions_removal_of_stored_secret_is_recorded(removal: dict[str, Any]) -> None:
    assert save(SECRET) == [Action.ADDED, Action.KEY_ENTERED]
    before = Provider.objects.get(name="Mine")
    settings = replace(PLAIN, network=KEPT_PROXY)
    assert save(settings, before) == [Action.CHANGED]
    assert save(replace(settings, **removal), before) == [Action.CHANGED, Action.KEY_REMOVED]
