"""The button plans exactly the trials that are missing, and the decision counts them."""

from dataclasses import replace

import pytest
from django.db.models import F

from tests.factories import make_model, make_provider
from toolbench.lab.comparisons.compare_choices import get_compare_choices
from toolbench.lab.counts.cells import recompute
from toolbench.lab.decisions.decide_page import DecidePage, get_decide_page
from toolbench.lab.decisions.decide_query import DecideQuery
from toolbench.lab.decisions.fresh_trials import Unconfirmable
from toolbench.lab.decisions.more_trials import get_offer, plan_more
from toolbench.lab.launching.launching import launch
from toolbench.lab.models import Provider, Run, RunConfig, SamplingProfile
from toolbench.lab.planning.run_request import ConfirmationNeeded, RunRequest

pytestmark = pytest.mark.django_db
DEMO = DecideQuery(scope="demo", want="fastest")


def finish(run: Run) -> None:
    run.trials.update(state="done", outcome="pass", task_pass=True, duration_ms=F("position") + 100.0)
    Run.objects.filter(pk=run.pk).update(state=Run.State.FINISHED)
    recompute(list(run.cells.values_list("pk", flat=True)))


@pytest.fixture
def run() -> Run:
    """A persona that passed every one of 40 trials of two scenarios."""
    model = make_model("perfect", provider=make_provider("Simulated", kind=Provider.Kind.SIMULATED))
    SamplingProfile.objects.create(name="default")
    scenarios = ("happy_path", "missing_workspace_id")
    run = launch(RunRequest(models=(model.pk,), scenarios=scenarios, trials=20, instance_kind="drawn"))
    finish(run)
    return run


def page(query: DecideQuery = DEMO) -> DecidePage:
    return get_decide_page(query)


def test_button_plans_the_missing_trials_and_they_decide(run: Run) -> None:
    assert "it closes with 32 more trials (16 of each scenario)" in page().decision.sentence
    offer = get_offer(page())
    assert offer
    assert (offer.trials, offer.scenarios, offer.total) == (16, ("happy_path", "missing_workspace_id"), 32)
    planned = plan_more(DEMO, owner=None)
    assert planned.trials.count() == 32
    assert not planned.trials.filter(added_by_hand=True).exists()
    assert planned.seed != run.seed
    assert planned.configs.get().policy_hash == run.configs.get().policy_hash
    finish(planned)
    found = page()
    assert len(found.rows) == 1
    assert (found.rows[0].standing.measured.tried, found.rows[0].standing.state) == (72, "qualified")
    assert found.decision.sentence.startswith("Only Simulated · perfect")
    assert found.decision.to_confirm
    assert get_offer(found) is None


def test_trials_that_are_still_to_come_are_not_planned_again(run: Run) -> None:
    planned = plan_more(DEMO, owner=None)
    assert get_offer(page()) is None
    assert page().under_way == (planned.pk,)
    with pytest.raises(Unconfirmable, match="still to come"):
        plan_more(DEMO, owner=None)


def test_chosen_runs_count_the_trials_planned_for_them(run: Run) -> None:
    chosen = replace(DEMO, scope="runs", runs=(run.pk,))
    finish(plan_more(chosen, owner=None))
    assert page(chosen).rows[0].standing.measured.tried == 72
    assert not any("which it repeats" in offer.title for offer in get_compare_choices().offers)


def test_a_failure_among_them_leaves_the_remaining_obstacle(run: Run) -> None:
    planned = plan_more(DEMO, owner=None)
    finish(planned)
    planned.trials.filter(index__lte=3).update(outcome="fail", task_pass=False)
    recompute(list(planned.cells.values_list("pk", flat=True)))
    found = page().decision
    assert "comes closest to being the fastest. Not decided" in found.sentence
    assert found.more or "no number of trials" in found.sentence


def test_other_settings_are_not_planned(run: Run) -> None:
    RunConfig.objects.update(policy_hash="another")
    with pytest.raises(Unconfirmable, match="settings are not what they were"):
        plan_more(DEMO, owner=None)


def test_paid_trials_are_asked_about_first(run: Run) -> None:
    Provider.objects.update(kind=Provider.Kind.OPENAI)
    with pytest.raises(ConfirmationNeeded) as asked:
        plan_more(DEMO, owner=None)
    assert plan_more(DEMO, owner=None, agreed=asked.value.requests).trials.count() == 32
