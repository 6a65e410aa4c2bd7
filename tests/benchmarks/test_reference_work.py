"""Tests of the reference work."""

from benchmarks.reference_work import measure_reference_ms, render_reference


def test_measure_reference_ms_takes_cpu_time() -> None:
    assert measure_reference_ms() > 0


def test_render_reference_names_median_least_and_most() -> None:
    assert render_reference([3.0, 1.0, 8.0]) == "Reference work took 3.0 ms of CPU; least 1.0, most 8.0."
