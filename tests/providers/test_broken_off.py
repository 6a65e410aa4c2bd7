"""Every point at which an answer can break off, on real sockets: whole and streamed, by reset and by close."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.providers.driven_trials import TrialNotes, build_plan, drive_trial
from tests.providers.faulty_server import (
    ANSWER_CUT,
    BREAK_POINTS,
    CONNECTION_ENDS,
    CONNECTION_RESET,
    DISCONNECTED,
    BreakPoint,
    FaultyServer,
)
from toolbench.engine.events import EndReason
from toolbench.providers.endpoint import Endpoint

INFRASTRUCTURE = {
    CONNECTION_RESET: True,
    DISCONNECTED: True,
    "not_an_answer": True,
    "not_http": True,
    ANSWER_CUT: False,
}
RETRYABLE = {CONNECTION_RESET: True, DISCONNECTED: True, "not_an_answer": False, "not_http": False, ANSWER_CUT: False}
ATTEMPTS = 2


@pytest.fixture(scope="module")
def faulty() -> Iterator[FaultyServer]:
    with FaultyServer() as server:
        yield server


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ending", CONNECTION_ENDS)
@pytest.mark.parametrize("point", BREAK_POINTS, ids=lambda point: point.name)
def test_drive_exchange_that_breaks_off_has_its_error_code(
    faulty: FaultyServer, point: BreakPoint, ending: str, streamed: bool
) -> None:
    notes = TrialNotes()
    endpoint = Endpoint(faulty.base_url, f"{point.name} {ending}", max_attempts=ATTEMPTS)
    loop_result = drive_trial(endpoint, notes, replace(build_plan(), model=endpoint.model, is_streamed=streamed))
    code = expected_code(point, ending, streamed=streamed)
    assert notes.codes == [code] * (ATTEMPTS if RETRYABLE.get(code) else 1)
    if code:
        error = loop_result.error
        assert error is not None
        assert (loop_result.end, error.infrastructure) == (EndReason.PROVIDER_ERROR, INFRASTRUCTURE[code])
        assert error.retryable == RETRYABLE[code]


def expected_code(point: BreakPoint, ending: str, *, streamed: bool) -> str:
    """Return the table's code.

    A body without a declared length ends where the connection is closed in order: half a JSON text is then no answer,
    and a stream is read as far as it arrived.
    """
    code = point.code(ending)
    return code or ("" if streamed else "not_an_answer")
