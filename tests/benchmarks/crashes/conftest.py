"""Player of crash schedules on the test database. Only simulated processes crash, never the database server."""

import logging
from collections.abc import Iterator

import pytest

from benchmarks.crashes.player import Player


@pytest.fixture
def player(transactional_db: None, caplog: pytest.LogCaptureFixture) -> Iterator[Player]:
    caplog.set_level(logging.CRITICAL + 1)  # each crash is logged by the code that it hits
    with Player().running() as player:
        yield player
