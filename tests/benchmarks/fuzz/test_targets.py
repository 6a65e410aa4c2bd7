"""Tests of the fuzzer's targets: how an input is run, and what counts as a violation."""

from collections.abc import Sequence

import pytest

from benchmarks.fuzz import targets
from benchmarks.fuzz.targets import TARGETS, ViolationError, run_input
from toolbench.engine.formats import TextCall, list_format_names, render

CALL = TextCall("get_weather", {"city": "Oslo", "days": 2}, "abc123def")
BODY = '{"choices": [{"message": {"role": "assistant", "content": "So."}, "finish_reason": "stop"}]}'


def test_run_input_without_bytes_raises_nothing() -> None:
    run_input(b"")


@pytest.mark.parametrize("number", range(len(TARGETS)))
def test_run_input_passes_calls_and_bodies_to_each_target(number: int) -> None:
    texts = [BODY, *(render([CALL], format=name, text="So.") for name in list_format_names())]
    for text in texts:
        run_input(bytes([number, 0, 0, 7, 3]) + text.encode())


def test_run_input_cuts_text_into_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Sequence[int]]] = []
    monkeypatch.setattr(targets, "TARGETS", (lambda text, cuts: seen.append((text, cuts)),))
    run_input(bytes([9, 0, 0, 2, 5]) + b"text")
    assert seen == [("text", [14, 15, 67])]


def test_run_input_of_target_that_raises_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "read_partial", lambda text: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run_input(bytes([TARGETS.index(targets.fuzz_partial_json), 0, 0, 1, 1]) + b"{}")


def test_fuzz_events_with_other_events_in_chunks_raises_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "_iter_chunks", lambda body, cuts: iter([body[:3]]))
    with pytest.raises(ViolationError, match="events in chunks"):
        run_input(bytes([TARGETS.index(targets.fuzz_events), 0, 0, 1, 1]) + b'data: {"a": 1}\n\n')
