"""Human verdicts on trials."""

from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import HumanVerdict, Trial
from toolbench.lab.results.trial.human_verdicts import MAX_REASON_CHARS, save_human_verdict
from toolbench.lab.results.trial.page import TrialPage, get_trial_page
from toolbench.lab.results.trial_list.filter import TrialFilter, filter_trials

pytestmark = pytest.mark.django_db


@pytest.fixture
def trial() -> Trial:
    return make_trial(make_cell(make_config(make_run())), "fail")


@pytest.fixture
def person() -> User:
    return User.objects.create(username="ana")


def open_page(trial: Trial) -> TrialPage:
    return get_trial_page(trial.pk, TrialFilter())


def find(search: str) -> list[int]:
    return list(
        filter_trials(TrialFilter.from_query(QueryDict(urlencode({"search": search})))).values_list("pk", flat=True)
    )


def test_save_human_verdict_changes_no_outcome_or_count(trial: Trial, person: User) -> None:
    recompute_stale_cells()
    before = Trial.objects.values().get(pk=trial.pk), open_page(trial).answered
    save_human_verdict(trial.pk, person, verdict="pass", reason=" The city is right.\0 ")
    recompute_stale_cells()
    page = open_page(trial)
    assert (Trial.objects.values().get(pk=trial.pk), page.answered) == before
    (row,) = page.human_verdicts
    assert (row.verdict, row.username, row.reason, row.current) == ("pass", "ana", "The city is right.", True)
    assert row.differs_from_judge


def test_save_human_verdict_replaces_and_keeps_the_older_one(trial: Trial, person: User) -> None:
    save_human_verdict(trial.pk, person, verdict="pass", reason="First.")
    save_human_verdict(trial.pk, None, verdict="fail", reason="Second.")
    rows = open_page(trial).human_verdicts
    assert [(row.reason, row.current, row.username) for row in rows] == [
        ("Second.", True, ""),
        ("First.", False, "ana"),
    ]
    assert HumanVerdict.objects.filter(trial=trial, current=True).count() == 1
    person.delete()
    assert open_page(trial).human_verdicts[1].username == "ana"


def test_human_verdict_on_an_earlier_execution_is_not_current(trial: Trial, person: User) -> None:
    save_human_verdict(trial.pk, person, verdict="pass", reason="Right.")
    Trial.objects.filter(pk=trial.pk).update(execution=2)
    assert [row.current for row in open_page(trial).human_verdicts] == [False]
    assert find("human:any") == []


@pytest.mark.parametrize(
    ("verdict", "reason", "message"),
    [
        ("pass", " \0 ", "The reason is missing. Enter one."),
        ("maybe", "So.", "Choose pass or fail."),
        ("", "", "Choose pass or fail. The reason is missing. Enter one."),
        ("fail", "x" * (MAX_REASON_CHARS + 1), "The reason has 4,001 characters. Shorten it to 4,000."),
    ],
)
def test_save_human_verdict_refuses_invalid_fields(
    trial: Trial, person: User, verdict: str, reason: str, message: str
) -> None:
    with pytest.raises(InvalidFieldsError, match=message):
        save_human_verdict(trial.pk, person, verdict=verdict, reason=reason)
    assert not HumanVerdict.objects.exists()


def test_save_human_verdict_counts_a_line_break_as_one_character(trial: Trial, person: User) -> None:
    save_human_verdict(trial.pk, person, verdict="pass", reason="x\r\n" * (MAX_REASON_CHARS // 2))
    assert HumanVerdict.objects.get(trial=trial).reason.count("\n") == MAX_REASON_CHARS // 2 - 1


@pytest.mark.parametrize("outcome", ["queued", "running", "infra", "na", "cancelled"])
def test_save_human_verdict_refuses_trial_without_pass_or_fail(trial: Trial, person: User, outcome: str) -> None:
    other = make_trial(trial.cell, outcome)
    assert not open_page(other).can_be_judged
    with pytest.raises(InvalidFieldsError, match="passed or failed"):
        save_human_verdict(other.pk, person, verdict="pass", reason="So.")


def test_save_human_verdict_on_a_deleted_run_raises_does_not_exist(trial: Trial, person: User) -> None:
    trial.run.deleted_at = trial.queued_at
    trial.run.save()
    with pytest.raises(Trial.DoesNotExist):
        save_human_verdict(trial.pk, person, verdict="pass", reason="So.")


def test_trial_filter_human_term_finds_agreement_and_disagreement(trial: Trial, person: User) -> None:
    agreed, unjudged = make_trial(trial.cell), make_trial(trial.cell)
    save_human_verdict(trial.pk, person, verdict="pass", reason="Right.")
    save_human_verdict(agreed.pk, person, verdict="fail", reason="Wrong.")
    save_human_verdict(agreed.pk, person, verdict="pass", reason="Right after all.")
    assert find("human:wrong") == [trial.pk]
    assert find("human:right outcome:pass") == [agreed.pk]
    assert sorted(find("human:any")) == sorted([trial.pk, agreed.pk])
    assert unjudged.pk not in find("human:any")
    assert TrialFilter.from_query(QueryDict("search=human:maybe")).ignored == ("human:maybe",)
