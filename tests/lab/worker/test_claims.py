from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from tests.factories import make_model, make_provider
from tests.lab.conftest import RunInThread
from tests.lab.query_plans import count_most_rows
from tests.lab.scripted_runs import launch_run
from toolbench.lab.models import Model, Probe, Provider, Run, Trial
from toolbench.lab.runs import control
from toolbench.lab.worker.claims import (
    CLAIM_STATEMENT,
    ISOLATE_AFTER_LOSSES,
    acquire_slot,
    claim,
    has_queued_trials,
    release_slot,
    renew_leases,
    requeue,
)
from toolbench.lab.worker.request_budget import MIN_SPARE_REQUESTS, REQUESTS_RESERVED_AT_CLAIM
from toolbench.lab.worker.slots import SlotHints

pytestmark = pytest.mark.django_db(transaction=True)


def make_limited_model(concurrency: int) -> Model:
    return make_model(provider=make_provider(concurrency=concurrency))


def test_claim_by_parallel_workers_returns_distinct_trials(elsewhere: RunInThread) -> None:
    model = make_limited_model(concurrency=100)
    launch_run(model, trials=40)
    futures = [elsewhere(claim, model.provider_id, limit=10, worker=f"w{number}") for number in range(4)]
    claimed = [trial.id for future in futures for trial in future.result()]
    assert len(claimed) == len(set(claimed)) == 40


def test_claim_keeps_provider_limit_over_all_workers(elsewhere: RunInThread) -> None:
    model = make_limited_model(concurrency=7)
    launch_run(model, trials=40)
    futures = [elsewhere(claim, model.provider_id, limit=5, worker=f"w{number}") for number in range(6)]
    assert sum(len(future.result()) for future in futures) == 7
    assert Trial.objects.filter(state="running").count() == 7


def test_claim_stores_execution_lease_worker_and_concurrency() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model, trials=3)
    claimed = claim(model.provider_id, limit=2, worker="me")
    rows = Trial.objects.filter(pk__in=[trial.id for trial in claimed])
    assert set(rows.values_list("execution", "worker", "concurrency", "state")) == {(1, "me", 2, "running")}
    assert {row.lease for row in rows} == {trial.lease for trial in claimed}
    assert all(row.lease_until is not None and row.lease_until > timezone.now() for row in rows)


def test_claim_takes_trials_in_run_order() -> None:
    model = make_limited_model(concurrency=5)
    run = launch_run(model, scenarios=("happy_path", "chat_only"), trials=4)
    claimed = {trial.id for trial in claim(model.provider_id, limit=3, worker="w")}
    assert claimed == set(run.trials.order_by("position").values_list("pk", flat=True)[:3])


def test_claim_prefers_run_with_fewer_trials_in_flight() -> None:
    model = make_limited_model(concurrency=20)
    first = launch_run(model, trials=10)
    claim(model.provider_id, limit=4, worker="w")
    second = launch_run(model, trials=10)
    claimed = claim(model.provider_id, limit=6, worker="w")
    claimed_run_ids = [trial.run_id for trial in claimed]
    assert (claimed_run_ids.count(first.pk), claimed_run_ids.count(second.pk)) == (1, 5)


def test_release_slot_frees_slot_until_it_is_acquired_again() -> None:
    model = make_limited_model(concurrency=1)
    launch_run(model, trials=3)
    (waiting,) = claim(model.provider_id, limit=1, worker="w")
    assert claim(model.provider_id, limit=1, worker="w") == ()
    release_slot(waiting.id, waiting.lease)
    assert len(claim(model.provider_id, limit=1, worker="w")) == 1
    assert not acquire_slot(model.provider_id, waiting.id, lease=waiting.lease)
    Trial.objects.exclude(pk=waiting.id).filter(state="running").update(state="done")
    assert acquire_slot(model.provider_id, waiting.id, lease=waiting.lease)
    assert not Trial.objects.get(pk=waiting.id).backing_off


def test_claim_and_acquire_slot_reuse_slots_of_finished_leases() -> None:
    model = make_limited_model(concurrency=1)
    launch_run(model, trials=3)
    (ended,) = claim(model.provider_id, limit=1, worker="w")
    assert not claim(model.provider_id, limit=1, worker="w", hints=SlotHints(finished_leases=(uuid4(),)))
    (second,) = claim(model.provider_id, limit=1, worker="w", hints=SlotHints(finished_leases=(ended.lease,)))
    release_slot(second.id, second.lease)
    assert not acquire_slot(model.provider_id, second.id, lease=second.lease)
    assert acquire_slot(
        model.provider_id, second.id, lease=second.lease, hints=SlotHints(finished_leases=(ended.lease,))
    )


def test_acquire_slot_repeated_with_same_lease_succeeds() -> None:
    model = make_limited_model(concurrency=1)
    launch_run(model, trials=2)
    (trial,) = claim(model.provider_id, limit=1, worker="w")
    release_slot(trial.id, trial.lease)
    for _ in range(2):
        assert acquire_slot(model.provider_id, trial.id, lease=trial.lease)
    assert not acquire_slot(model.provider_id, trial.id, lease=uuid4())


def test_claim_leaves_reserved_slots_free() -> None:
    model = make_limited_model(concurrency=3)
    launch_run(model, trials=3)
    assert len(claim(model.provider_id, limit=3, worker="w", hints=SlotHints(reserved_slots=2))) == 1


def test_claim_keeps_share_of_each_worker_and_the_limit() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model, trials=9)
    share = SlotHints(share=3, ahead=2)
    claimed = claim(model.provider_id, limit=9, worker="first", hints=share)
    assert sorted(trial.waits_for_slot for trial in claimed) == [False, False, False, True, True]
    assert claim(model.provider_id, limit=9, worker="first", hints=SlotHints(share=3)) == ()
    assert len(claim(model.provider_id, limit=9, worker="second", hints=SlotHints(share=3))) == 2
    ended = tuple(trial.lease for trial in claimed if not trial.waits_for_slot)[:1]
    hints = SlotHints(finished_leases=ended, share=3)
    assert len(claim(model.provider_id, limit=9, worker="first", hints=hints)) == 1


def test_claim_beyond_lowered_share_claims_nothing_ahead() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model, trials=9)
    assert len(claim(model.provider_id, limit=4, worker="w")) == 4
    assert claim(model.provider_id, limit=9, worker="w", hints=SlotHints(share=3, ahead=3)) == ()


def test_claim_ahead_marks_trials_as_waiting_for_slot() -> None:
    model = make_limited_model(concurrency=2)
    run = launch_run(model, trials=9, request_cap=1000)
    claimed = claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3))
    assert sorted(trial.waits_for_slot for trial in claimed) == [False, False, True, True, True]
    waiting = {trial.id for trial in claimed if trial.waits_for_slot}
    assert set(run.trials.filter(backing_off=True).values_list("pk", flat=True)) == waiting
    assert {trial.in_flight for trial in claimed} == {2}
    assert claim(model.provider_id, limit=9, worker="w") == ()
    assert len(claim(model.provider_id, limit=1, worker="w", hints=SlotHints(ahead=3))) == 1


@pytest.mark.parametrize(
    "settings", [{"jobs": 5}, {"token_cap": 1000}, {"request_cap": 100}], ids=["jobs", "tokens", "requests"]
)
def test_claim_ahead_skips_runs_with_limits(settings: dict[str, int]) -> None:
    model = make_limited_model(concurrency=3)
    limited, other = launch_run(model, trials=9, **settings), launch_run(model, trials=9)
    assert len(claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3))) == 3
    limited.trials.filter(state="queued").update(state="done")
    claimed = claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3))
    assert {(trial.run_id, trial.waits_for_slot) for trial in claimed} == {(other.pk, True)}


def test_claim_ahead_is_off_while_slots_are_reserved_or_vary() -> None:
    model = make_limited_model(concurrency=2)
    launch_run(model, trials=9)
    assert len(claim(model.provider_id, limit=2, worker="w")) == 2
    assert claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3, reserved_slots=1)) == ()
    probe = Probe.objects.create(provider=model.provider, model=model, state="running")
    assert claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3)) == ()
    probe.delete()
    Provider.objects.update(adaptive=True)
    assert claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3)) == ()
    Provider.objects.update(adaptive=False, base_url="")
    assert claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3)) == ()
    Provider.objects.update(base_url=model.provider.base_url)
    assert len(claim(model.provider_id, limit=9, worker="w", hints=SlotHints(ahead=3))) == 3


def test_claim_reserves_first_requests_only_well_below_limit() -> None:
    model, sufficient_cap = make_limited_model(concurrency=50), 12 * MIN_SPARE_REQUESTS + 3 * REQUESTS_RESERVED_AT_CLAIM
    caps: tuple[dict[str, int], ...] = (
        {},
        {"request_cap": sufficient_cap},
        {"request_cap": sufficient_cap - 1},
        {"token_cap": 99},
    )
    runs = [launch_run(model, **cap).pk for cap in caps]
    ahead = {(trial.run_id, trial.reserved_requests) for trial in claim(model.provider_id, limit=12, worker="w")}
    assert ahead == set(zip(runs, (REQUESTS_RESERVED_AT_CLAIM, REQUESTS_RESERVED_AT_CLAIM, 0, 0), strict=True))
    reserved = dict(Run.objects.values_list("pk", "requests_reserved"))
    assert reserved == dict(
        zip(runs, (3 * REQUESTS_RESERVED_AT_CLAIM, 3 * REQUESTS_RESERVED_AT_CLAIM, 0, 0), strict=True)
    )


@pytest.mark.parametrize("state", [Run.State.PAUSED, Run.State.CANCELLING, Run.State.CANCELLED])
def test_claim_skips_runs_that_are_not_running(state: str) -> None:
    model = make_limited_model(concurrency=5)
    run = launch_run(model)
    Run.objects.filter(pk=run.pk).update(state=state)
    assert claim(model.provider_id, limit=5, worker="w") == ()
    assert not has_queued_trials(model.provider_id)


def test_claim_ignores_paused_reason_of_provider() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model)
    Provider.objects.update(paused_reason="no key")
    assert has_queued_trials(model.provider_id)
    assert len(claim(model.provider_id, limit=5, worker="w")) == 3


def test_claim_keeps_run_limit_within_provider_limit() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model, trials=9, jobs=2)
    assert len(claim(model.provider_id, limit=9, worker="w")) == 2
    assert claim(model.provider_id, limit=9, worker="w") == ()
    launch_run(model, trials=9, jobs=7)
    assert len(claim(model.provider_id, limit=9, worker="w")) == 3


def test_claim_skips_run_at_its_request_limit() -> None:
    model = make_limited_model(concurrency=5)
    run = launch_run(model, request_cap=4)
    Run.objects.filter(pk=run.pk).update(requests_reserved=4)
    assert claim(model.provider_id, limit=5, worker="w") == ()


def test_renew_leases_returns_only_valid_leases() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model)
    first, second = claim(model.provider_id, limit=2, worker="w")
    Trial.objects.filter(pk=first.id).update(lease_until=timezone.now() - timedelta(seconds=9))
    Trial.objects.filter(pk=second.id).update(lease=None, state="queued")
    assert renew_leases([(first.id, first.lease), (second.id, second.lease)]) == {first.lease}
    renewed = Trial.objects.get(pk=first.id).lease_until
    assert renewed is not None
    assert renewed > timezone.now()


def test_requeue_queues_only_trials_with_valid_lease() -> None:
    model = make_limited_model(concurrency=5)
    launch_run(model)
    first, second = claim(model.provider_id, limit=2, worker="w")
    Trial.objects.filter(pk=second.id).update(state="done", lease=None)
    Trial.objects.update(queued_at=timezone.now() - timedelta(hours=1))
    assert requeue([(first.id, first.lease), (second.id, second.lease)]) == {first.id: first.run_id}
    requeued = Trial.objects.get(pk=first.id)
    assert requeued.state == "queued"
    assert timezone.now() - requeued.queued_at < timedelta(minutes=30)
    assert Trial.objects.get(pk=second.id).state == "done"


def test_claim_during_cancel_leaves_no_trial_running(elsewhere: RunInThread) -> None:
    model = make_limited_model(concurrency=100)
    run = launch_run(model, trials=50)
    futures = [elsewhere(claim, model.provider_id, limit=9, worker="w") for _ in range(3)]
    cancelled = elsewhere(control.cancel_run, run.pk)
    claimed = [trial for future in futures for trial in future.result()]
    cancelled.result()
    requeue([(trial.id, trial.lease) for trial in claimed])
    assert run.trials.filter(state="running").count() == 0


def test_claim_under_request_limit_takes_trials_likely_to_finish() -> None:
    model = make_limited_model(concurrency=50)
    launch_run(model, trials=40, request_cap=12)
    first = claim(model.provider_id, limit=50, worker="w")
    assert len(first) == 4  # 3 requests each are expected before any trial is done
    assert not claim(model.provider_id, limit=50, worker="w")


def test_claim_with_one_request_left_takes_one_trial() -> None:
    model = make_limited_model(concurrency=50)
    run = launch_run(model, trials=40, request_cap=12)
    Run.objects.filter(pk=run.pk).update(requests_reserved=11)
    assert len(claim(model.provider_id, limit=50, worker="w")) == 1


def test_claim_isolates_trial_with_repeated_server_losses() -> None:
    model = make_limited_model(concurrency=5)
    run = launch_run(model, scenarios=("chat_only",), trials=4)
    first, second = run.trials.order_by("position")[:2]
    run.trials.filter(pk__in=[first.pk, second.pk]).update(server_losses=ISOLATE_AFTER_LOSSES)
    others = claim(model.provider_id, limit=9, worker="w")
    beside = claim(model.provider_id, limit=9, worker="w")
    requeue([(trial.id, trial.lease) for trial in others])
    run.trials.filter(pk__in=[trial.id for trial in others]).update(state="done")
    alone = claim(model.provider_id, limit=9, worker="w")
    run.trials.filter(pk__in=[trial.id for trial in others]).update(state="queued")
    assert {trial.id for trial in others}.isdisjoint({first.pk, second.pk})
    assert (len(others), beside) == (2, ())
    assert [(trial.id, trial.server_losses) for trial in alone] == [(first.pk, ISOLATE_AFTER_LOSSES)]
    assert claim(model.provider_id, limit=9, worker="w") == ()


def test_claim_runs_one_trial_with_lost_leases_of_all_providers() -> None:
    first, second = make_limited_model(concurrency=5), make_limited_model(concurrency=5)
    for model in (first, second):
        launch_run(model, trials=2)
    Trial.objects.update(lease_losses=ISOLATE_AFTER_LOSSES)
    (alone,) = claim(first.provider_id, limit=9, worker="w")
    assert [claim(model.provider_id, limit=9, worker="w") for model in (first, second)] == [(), ()]
    requeue([(alone.id, alone.lease)])
    assert len(claim(second.provider_id, limit=9, worker="w")) == 1
    assert set(Trial.objects.values_list("lease_losses", flat=True)) == {ISOLATE_AFTER_LOSSES}


def test_requeue_counts_only_lost_servers() -> None:
    model = make_limited_model(concurrency=5)
    run = launch_run(model)
    lost, paused = claim(model.provider_id, limit=2, worker="w")
    for _ in range(2):
        requeue([(trial.id, trial.lease) for trial in (lost, paused)], lost_server_ids=[lost.id])
    assert run.trials.get(pk=lost.id).server_losses == 1
    assert run.trials.get(pk=paused.id).server_losses == 0


def test_claim_reads_each_queued_row_at_most_twice() -> None:
    model = make_limited_model(concurrency=50)
    launch_run(model, trials=400)
    parameters: dict[str, Any] = {"provider": model.provider_id, "max_trials": 20, "finished_leases": []}
    parameters |= {
        "unstored_leases": [],
        "reserved_slots": 0,
        "ahead": 0,
        "share": None,
        "spare_requests": 15,
        "worker": "w",
        "lease": 30,
        "first_requests": 3,
    }
    assert count_most_rows(CLAIM_STATEMENT, parameters | {"isolate_after": 3, "isolated": False}) <= 2 * 400
    assert Trial.objects.filter(state="running").count() == 20
