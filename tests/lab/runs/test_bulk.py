import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import make_run
from toolbench.lab.models import Run
from toolbench.lab.runs import bulk
from toolbench.lab.runs.action_checks import RunActionError

pytestmark = pytest.mark.django_db


def test_label_runs_labels_the_given_runs_only() -> None:
    first, second, other = make_run(), make_run(), make_run(label="old")
    assert bulk.label_runs([first.pk, second.pk], "  nightly\0 ") == 2
    assert list(Run.objects.order_by("pk").values_list("label", flat=True)) == ["nightly", "nightly", "old"]
    assert bulk.label_runs([other.pk], "") == 1
    assert Run.objects.get(pk=other.pk).label == ""


def test_label_runs_locks_runs_by_id() -> None:
    first, second = make_run(), make_run()
    with CaptureQueriesContext(connection) as queries:
        bulk.label_runs([second.pk, first.pk], "x")
    (locking,) = (query["sql"] for query in queries if "FOR NO KEY UPDATE" in query["sql"])
    assert locking.endswith('ORDER BY "lab_run"."id" ASC FOR NO KEY UPDATE')


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (Run.State.RUNNING, "running: cancel it first"),
        (Run.State.PAUSED, "paused: cancel it first"),
        (Run.State.CANCELLING, "being cancelled: wait until its last requests have ended"),
    ],
)
def test_delete_runs_with_one_that_has_not_ended_deletes_none(state: Run.State, message: str) -> None:
    ended, open_run = make_run(), make_run(state=state)
    with pytest.raises(RunActionError, match=f"Run {open_run.pk} is {message}"):
        bulk.delete_runs([ended.pk, open_run.pk])
    assert not Run.objects.exclude(deleted_at=None).exists()


def test_delete_runs_hides_the_given_runs_only() -> None:
    deleted, kept = make_run(state=Run.State.CANCELLED), make_run()
    assert bulk.delete_runs([deleted.pk]) == 1
    assert list(Run.objects.filter(deleted_at=None)) == [kept]


def test_bulk_actions_on_missing_deleted_or_no_runs_change_nothing() -> None:
    run = make_run()
    for ids, sentence in (
        ([], "No run is selected"),
        ([run.pk, 999_999], "no run 999999"),
        (range(201), "At most 200"),
    ):
        with pytest.raises(RunActionError, match=sentence):
            bulk.label_runs(list(ids), "x")
    assert Run.objects.get().label == ""
