"""Every point at which an answer can break off, on real sockets: whole and streamed, by reset and by close."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.providers.drives import Notes, driven, plan
from tests.providers.faulty import CUT, ENDINGS, GONE, POINTS, RESET, FaultyServer, Point
from toolbench.engine.events import End
from toolbench.providers.endpoint import Endpoint

INFRASTRUCTURE = {RESET: True, GONE: True, "not_an_answer": True, "not_http": True, CUT: False}
RETRYABLE = {RESET: True, GONE: True, "not_an_answer": False, "not_http": False, CUT: False}
ATTEMPTS = 2


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with FaultyServer() as server:
        yield server


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.name)
def test_exchange_broken_off_gets_its_code(faulty: FaultyServer, point: Point, ending: str, streamed: bool) -> None:
    notes = Notes()
    endpoint = Endpoint(faulty.base_url, f"{point.name} {ending}", max_attempts=ATTEMPTS)
    ended = driven(endpoint, notes, replace(plan(), model=endpoint.model, stream=streamed))
    code = expected_code(point, ending, streamed=streamed)
    assert notes.codes == [code] * (ATTEMPTS if RETRYABLE.get(code) else 1)
    if code:
        error = ended.error
        assert error is not None
        assert (ended.end, error.infrastructure) == (End.PROVIDER_ERROR, INFRASTRUCTURE[code])
        assert error.retryable == RETRYABLE[code]


def expected_code(point: Point, ending: str, *, streamed: bool) -> str:
    """Return the table's code.

    A body without a declared length ends where the connection is closed in order: half a JSON text is then no answer,
    and a stream is read as far as it came.
    """
    code = point.code(ending)
    return code or ("" if streamed else "not_an_answer")
