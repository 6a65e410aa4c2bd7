"""Parts of a benchmark are stopped when their block ends, and when their start fails."""

import pytest

from benchmarks.start_and_stop import StartAndStop


class RecordedPart(StartAndStop):
    """Part that records its calls; its start fails if `error` is not None."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.calls: list[str] = []
        self._error = error

    def start(self) -> None:
        self.calls.append("start")
        if self._error:
            raise self._error

    def stop(self) -> None:
        self.calls.append("stop")


def test_start_and_stop_calls_each_once() -> None:
    with RecordedPart() as part:
        assert part.calls == ["start"]
    assert part.calls == ["start", "stop"]


@pytest.mark.parametrize("error", [RuntimeError("no network"), KeyboardInterrupt()])
def test_start_and_stop_stops_part_whose_start_fails(error: BaseException) -> None:
    part = RecordedPart(error)
    with pytest.raises(type(error)), part:
        pytest.fail("the block began")
    assert part.calls == ["start", "stop"]
