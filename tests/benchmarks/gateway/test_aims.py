"""Aims of the gateway's speed: the worst line counts, and a missing figure is not a success."""

import pytest

from benchmarks.gateway.aims import DIRECT, LITELLM, STORED, UNSTORED, Delay, Line, Memory, print_aims


def build_line(way: str, concurrency: int, per_second: float, p50: float = 1.0) -> Line:
    return Line(way, concurrency, p50, 2 * p50, per_second, cpu_ms=0.1 * concurrency, postgres_ms=0.5)


def read_aims(lines: list[Line], capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[str, str]]:
    """Return the figure of each aim, and whether it is met."""
    print_aims(lines, {STORED: Delay(1.0, 6.0), UNSTORED: Delay(1.0, 2.0)}, Memory(1_000, 100, 150, 101))
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in capsys.readouterr().out.strip().splitlines()]
    return {name: (figure, met) for name, _, figure, met in rows[2:]}


def test_print_aims_shows_worst_figure_of_all_lines(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [build_line(DIRECT, 1, 5_000, p50=0.25)]
    lines += [build_line(STORED, 1, 600, p50=1.5), build_line(STORED, 50, 400), build_line(UNSTORED, 1, 300, p50=3.0)]
    lines += [build_line(UNSTORED, 50, 900)]
    aims = read_aims([*lines, build_line(LITELLM, 50, 80)], capsys)
    assert aims[f"p50 added at C = 1, {STORED}, ms"] == ("1.25", "yes")
    assert aims[f"p50 added at C = 1, {UNSTORED}, ms"] == ("2.75", "no")
    assert aims["gateway CPU per request, stored, ms"] == ("5.00", "no")
    assert aims[f"requests/s at C > 1, {STORED}"] == ("400.00", "no")
    assert aims[f"requests/s at C > 1, {UNSTORED}"] == ("900.00", "yes")
    assert aims["times the requests/s of LiteLLM, stored"] == ("5.00", "yes")
    assert aims[f"delay of a text in a stream, {STORED}, p95, ms"] == ("6.00", "no")
    assert aims["memory of each of 1,000 open streams, kB; MB more after they closed"] == ("51; 1", "–")


def test_print_aims_without_litellm_says_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    aims = read_aims(
        [build_line(way, concurrency, 900) for way in (DIRECT, STORED, UNSTORED) for concurrency in (1, 10)], capsys
    )
    assert aims["times the requests/s of LiteLLM, stored"] == ("not measured", "–")
