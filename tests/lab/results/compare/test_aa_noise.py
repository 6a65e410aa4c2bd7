"""A/A repeats and the noise that they measure."""

import pytest
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_trials
from toolbench.lab.models import Run
from toolbench.lab.results.compare.aa_noise import measure_noise
from toolbench.lab.results.compare.comparison import get_comparison
from toolbench.lab.results.compare.query import CompareQuery
from toolbench.lab.runs.repeat import NOISE_PURPOSE, repeat_for_noise

pytestmark = pytest.mark.django_db


def make_tried_run(passed: int, **fields: object) -> Run:
    run = make_run(**fields)
    make_trials(make_cell(make_config(run)), **{"pass": passed, "fail": 20 - passed})
    return run


def build_query(first: Run, second: Run) -> CompareQuery:
    return CompareQuery.from_query(QueryDict(f"a_run={first.pk}&b_run={second.pk}"))


def test_repeat_for_noise_keeps_instances_and_draws_new_seeds() -> None:
    run = make_tried_run(20)
    repeat = repeat_for_noise(run, owner=None)
    assert (repeat.purpose, repeat.repeat_of) == (NOISE_PURPOSE, run)
    columns = ("scenario", "instance_seed", "position")
    assert [*repeat.trials.values_list(*columns)] == [*run.trials.values_list(*columns)]
    assert set(repeat.trials.values_list("seed", flat=True)).isdisjoint(run.trials.values_list("seed", flat=True))


def test_measure_noise_finds_the_repeat_of_a_compared_run() -> None:
    one, other = make_tried_run(18), make_tried_run(12)
    repeat = make_tried_run(17, purpose=NOISE_PURPOSE, repeat_of=one)
    (noise,) = measure_noise(get_comparison(build_query(one, other)))
    assert (noise.run_id, noise.repeat_id) == (one.pk, repeat.pk)
    assert noise.compared.difference is not None
    assert noise.compared.difference.value == pytest.approx(-0.05)


def test_measure_noise_of_aa_comparison_is_empty() -> None:
    one = make_tried_run(18)
    repeat = make_tried_run(17, purpose=NOISE_PURPOSE, repeat_of=one)
    for pair in ((one, repeat), (repeat, one)):
        comparison = get_comparison(build_query(*pair))
        assert comparison.has_equal_settings
        assert measure_noise(comparison) == ()
