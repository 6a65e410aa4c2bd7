"""Counts of the sides of a comparison by stratum and instance."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.models import Case, CaseSet, Trial
from toolbench.lab.results.compare.strata import read_strata

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("hashes", "is_repeating"), [(("a", "b", "c", ""), False), (("a", "b", "a"), True), (("", ""), False)]
)
def test_read_strata_trial_without_an_answer_repeats_none(hashes: tuple[str, ...], is_repeating: bool) -> None:
    cell = make_cell(make_config(make_run()), deterministic=True)
    for answer_hash in hashes:
        make_trial(cell, "pass" if answer_hash else "fail", answer_hash=answer_hash)
    ((stratum,),) = read_strata([Trial.objects.all()])
    assert (stratum.answered, stratum.repeating) == (len(hashes), is_repeating)


def test_read_strata_equal_answers_to_a_test_case_are_repeats() -> None:
    case = Case.objects.create(set=CaseSet.objects.create(name="Own"), slug="own-weather", title="Weather")
    config = make_config(make_run(instance_kind="drawn"))
    for slug in (case.slug, "happy_path"):
        cell = make_cell(config, slug, deterministic=True)
        for seed in (1, 2):
            make_trial(cell, instance_seed=seed, answer_hash="a")
    (strata,) = read_strata([Trial.objects.all()])
    assert [(stratum.scenario, stratum.instance, stratum.answered, stratum.repeating) for stratum in strata] == [
        ("happy_path", 1, 1, False),
        ("happy_path", 2, 1, False),
        ("own-weather", None, 2, True),
    ]
