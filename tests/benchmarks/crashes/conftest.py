"""A player on the test database. Its server loses nothing either: only processes crash here, never the server."""

import logging
from collections.abc import Iterator

import pytest

from benchmarks.crashes.player import Player

NOT_REPEATABLE = (
    "One freeze before the outcomes of a fixed run left a cell that was not recounted, and one cut of a probe left it "
    "inconclusive. Whether worker or harness is at fault is not known yet: run python -m benchmarks.crashes."
)


@pytest.fixture
def player(transactional_db: None, caplog: pytest.LogCaptureFixture) -> Iterator[Player]:
    pytest.skip(NOT_REPEATABLE)
    caplog.set_level(logging.CRITICAL + 1)  # each crash is logged by the code that it hits
    with Player().running() as player:
        yield player
