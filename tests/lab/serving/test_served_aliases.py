"""Aliases as the gateway uses them."""

import pytest

from tests.factories import make_model, make_pace, make_provider
from toolbench.lab.serving.aliases import AliasChoice, save_alias
from toolbench.lab.serving.served_aliases import load_served_aliases

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("adaptive", "pace", "expected"),
    [(False, 3, 200), (True, None, 8), (True, 3, 3), (True, 900, 200)],
)
def test_load_served_aliases_has_current_concurrency_limit(adaptive: bool, pace: int | None, expected: int) -> None:
    provider = make_provider(adaptive=adaptive, concurrency=200)
    save_alias(AliasChoice("weather", make_model(provider=provider).pk), owner=None)
    if pace is not None:
        make_pace(provider, concurrency=pace)
    assert load_served_aliases()["weather"].concurrency == expected
