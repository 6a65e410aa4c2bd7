"""Answers of 429 and 5xx, retries and back-off are counted as the server counted them, over real HTTP."""

import random
import threading
from collections import Counter

import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial, recompute_all
from tests.lab.benches import launched, plays_well, scripted_model, work
from toolbench.lab.counts.metrics import METRICS, Counted, rate_for, value_of
from toolbench.lab.counts.retries import HAD, count_retries
from toolbench.lab.counts.tallies import tally
from toolbench.lab.models import Cell, Run, Trial
from toolbench.lab.traces.trial_filter import TrialFilter, matching
from toolbench.providers.scripted import Answer, ScriptedProvider, Seen, fails

pytestmark = pytest.mark.django_db(transaction=True)
WAIT = 0.25  # seconds of Retry-After


class Limited:
    """A server that answers 15 % of requests with 429 and a Retry-After, and some with 503; it counts what it sent."""

    def __init__(self) -> None:
        self.sent: Counter[int] = Counter()
        self._random = random.Random(11)
        self._lock = threading.Lock()

    def __call__(self, seen: Seen) -> Answer:
        with self._lock:
            drawn = self._random.random()
            status = 429 if drawn < 0.15 else 503 if drawn < 0.18 else 200
            self.sent[status] += 1
        if status == 200:
            return plays_well(seen)
        return Answer(status, {"retry-after": str(WAIT)}, fails(status).body)


@pytest.fixture
def limited() -> tuple[Run, Counter[int]]:
    """A run of 20 trials each of two scenarios, and what the server sent."""
    limits = Limited()
    with ScriptedProvider(limits) as provider:
        model = scripted_model(provider, max_attempts=6)
        run = launched(model, scenarios=("happy_path", "chat_only"), trials=20)
        assert work(model) == 40
    return run, limits.sent


def test_recount_rate_limited_run_equals_server(limited: tuple[Run, Counter[int]]) -> None:
    run, sent = limited
    assert sent[429] >= 5
    assert sent[503] >= 1
    counts = tally(run.cells.all())
    assert (counts.answers_429, counts.answers_5xx) == (sent[429], sent[503])
    assert counts.retries == sent[429] + sent[503]
    assert counts.requests == sent.total()
    assert counts.passed == 40
    assert counts.retries_known
    assert counts.backoff_ms >= 1000 * WAIT * counts.retries


def test_trial_filter_had_opens_counted_trials(limited: tuple[Run, Counter[int]]) -> None:
    run, _ = limited
    for cell in run.cells.all():
        shown = {had: matching(TrialFilter(cell=cell.pk, had=had)).count() for had in HAD}
        assert shown == {"429": cell.trials_429, "5xx": cell.trials_5xx, "retry": cell.trials_retried}


def test_count_retries_of_trials_equals_cells(limited: tuple[Run, Counter[int]]) -> None:
    run, _ = limited
    found = count_retries(Trial.objects.filter(run=run))
    for cell in run.cells.all():
        assert found[cell.scenario].answers_429 == cell.answers_429
        assert found[cell.scenario].answers_5xx == cell.answers_5xx
        assert found[cell.scenario].retries == cell.retries
        assert found[cell.scenario].trials_429 == cell.trials_429
        assert found[cell.scenario].backoff_ms == pytest.approx(cell.backoff_ms)


def a_cell() -> Cell:
    return make_cell(make_config(make_run()))


def counted(cell: Cell) -> tuple[int, int, int, float]:
    recompute_all()
    cell.refresh_from_db()
    return cell.answers_429, cell.trials_429, cell.answers_5xx, cell.backoff_ms


def test_recount_lost_execution_keeps_its_answers_of_429() -> None:
    cell = a_cell()
    trial = make_trial(cell, execution=2, requests=1)
    make_step(trial, execution=1, status=429, ok=False, error_code="rate_limited")
    make_step(trial, execution=1, attempt=2, backoff_ms=500.0, status=None, ok=False, error_code="cancelled")
    make_step(trial, execution=2, status=200)
    assert counted(cell) == (1, 1, 0, 500.0)
    assert tally([cell]).retries_known


def test_recount_error_inside_an_answer_of_200_is_counted() -> None:
    cell = a_cell()
    trial = make_trial(cell)
    make_step(trial, status=200, ok=False, error_code="rate_limited")
    make_step(trial, status=200, ok=False, error_code="overloaded", attempt=2, backoff_ms=10.0)
    make_step(trial, attempt=3, backoff_ms=20.0, status=200)
    assert counted(cell) == (1, 1, 1, 30.0)


def test_recount_answer_without_status_makes_counts_unknown() -> None:
    cell = a_cell()
    make_step(make_trial(cell), status=None)
    counted(cell)
    assert not tally([cell]).retries_known
    assert not count_retries(Trial.objects.all())["happy_path"].retries_known


def test_metrics_of_unknown_retries_are_no_rate() -> None:
    cell = a_cell()
    make_step(make_trial(cell), status=None)
    counted(cell)
    names = ("retried", "answers_429", "answers_5xx")
    assert {rate_for(METRICS[name], tally([cell]), tally([])) for name in names} == {None}
    assert value_of(METRICS["backoff"], Counted(tally([cell]), tally([]))).figure is None
