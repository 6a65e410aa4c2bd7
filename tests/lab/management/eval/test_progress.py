"""The progress of a run on the command line."""

from io import StringIO

import pytest

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.management.eval.progress import show_progress_bar

pytestmark = pytest.mark.django_db


def test_show_progress_bar_in_a_file_prints_one_line_per_change() -> None:
    run, out = make_run(), StringIO()
    make_trials(make_cell(make_config(run)), **{"pass": 3, "queued": 2})
    with show_progress_bar(run, out, silent=False) as bar:
        bar.update()
        bar.update()
        assert out.getvalue().splitlines() == [f"Run {run.pk}: 3 of 5 trials. 3 passed"]


def test_show_progress_bar_silent_prints_nothing() -> None:
    run, out = make_run(), StringIO()
    with show_progress_bar(run, out, silent=True) as bar:
        bar.update()
    assert out.getvalue() == ""
