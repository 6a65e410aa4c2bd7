"""Aims of an address, and the lines that name missed aims."""

from dataclasses import replace

import pytest

from benchmarks.million.aims import PageCost, find_exit_code, find_later_aim, render_missed

CHEAP = PageCost("/", 200, first_ms=400, first_cpu_ms=200, p95_ms=100, cpu_ms=50, queries=12, kilobytes=60)


@pytest.mark.parametrize(
    ("cost", "line"),
    [
        (replace(CHEAP, first_ms=401.0), "- `/`: first_ms 401 > 400"),
        (replace(CHEAP, p95_ms=101.0), "- `/`: p95_ms 101 > 100"),
        (replace(CHEAP, queries=13), "- `/`: queries 13 > 12"),
        (replace(CHEAP, kilobytes=61.0), "- `/`: kilobytes 61 > 60"),
        (replace(CHEAP, status=500), "- `/`: status 500"),
        (replace(CHEAP, p95_ms=101.0, queries=13), "- `/`: p95_ms 101 > 100, queries 13 > 12"),
    ],
)
def test_render_missed_names_missed_aims_with_figures(cost: PageCost, line: str) -> None:
    assert render_missed([CHEAP, cost], by_cpu=False).splitlines() == [
        "1 of 2 addresses miss an aim by time that passed.",
        line,
    ]


def test_list_missed_by_cpu_ignores_elapsed_time() -> None:
    slow = replace(CHEAP, first_ms=4_000.0, p95_ms=900.0)
    assert slow.list_missed(by_cpu=False)
    assert not slow.list_missed(by_cpu=True)
    assert replace(slow, cpu_ms=101.0).list_missed(by_cpu=True) == ["cpu_ms 101 > 100"]


@pytest.mark.parametrize(
    ("address", "milliseconds"),
    [
        ("/trials/?run=1", 100),
        ("/trials/?search=draft", 300),
        ("/search/?q=draft", 300),
        ("/decide/records/", 300),
        ("/api/v1/compare?a_run=1&b_run=2", 300),
        ("/api/v1/trials?outcome=fail", 100),
    ],
)
def test_find_later_aim_depends_on_address(address: str, milliseconds: int) -> None:
    assert find_later_aim(address) == milliseconds


def test_exit_code_tells_whether_an_aim_is_missed() -> None:
    assert find_exit_code([CHEAP]) == 0
    assert find_exit_code([CHEAP, replace(CHEAP, p95_ms=101.0)]) == 1
    assert find_exit_code([CHEAP, replace(CHEAP, status=500)]) == 1
