"""A/A repeats and the noise that they measure."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.models import Run
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.noise_floor import measure_noise
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.runs.repeat import NOISE_PURPOSE, repeat_for_noise

pytestmark = pytest.mark.django_db


def tried(passed: int, **fields: object) -> Run:
    run = make_run(**fields)
    make_trials(make_cell(make_config(run)), **{"pass": passed, "fail": 20 - passed})
    return run


def compared(first: Run, second: Run) -> CompareQuery:
    return CompareQuery.from_query(QueryDict(f"a_run={first.pk}&b_run={second.pk}"))


def test_aa_repeat_has_equal_instances_and_new_seeds() -> None:
    run = tried(20)
    again = repeat_for_noise(run, owner=None)
    assert (again.purpose, again.repeat_of) == (NOISE_PURPOSE, run)
    columns = ("scenario", "instance_seed", "position")
    assert [*again.trials.values_list(*columns)] == [*run.trials.values_list(*columns)]
    assert set(again.trials.values_list("seed", flat=True)).isdisjoint(run.trials.values_list("seed", flat=True))


def test_comparison_shows_the_aa_noise_of_its_runs() -> None:
    one, other = tried(18), tried(12)
    again = tried(17, purpose=NOISE_PURPOSE, repeat_of=one)
    (floor,) = measure_noise(get_comparison(compared(one, other)))
    assert (floor.first, floor.second) == (one.pk, again.pk)
    assert floor.compared.difference is not None
    assert floor.compared.difference.value == pytest.approx(-0.05)


def test_aa_comparison_has_equal_settings() -> None:
    one = tried(18)
    page = get_comparison(compared(one, tried(17, purpose=NOISE_PURPOSE, repeat_of=one)))
    assert page.has_equal_settings
    assert measure_noise(page) == ()
