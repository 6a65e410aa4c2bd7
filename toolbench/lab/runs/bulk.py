"""Actions on several runs at once: label and delete. They change all runs or none."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models.functions import Now

from toolbench.lab.models import Run
from toolbench.lab.query_params import clean_text
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.control import MAX_LABEL_CHARACTERS

MAX_RUNS_AT_ONCE = 200


@transaction.atomic
def label_runs(run_ids: Sequence[int], text: str) -> int:
    """Set the label of these runs, or remove it if `text` is ""; return the number of runs.

    Raises:
        RunActionError: there are no or too many ids, or one of the runs does not exist.
    """
    runs = _get_runs(run_ids)
    return Run.objects.filter(pk__in=[run.pk for run in runs]).update(label=clean_text(text, MAX_LABEL_CHARACTERS))


@transaction.atomic
def delete_runs(run_ids: Sequence[int]) -> int:
    """Hide these runs on all pages; return their number.

    Raises:
        RunActionError: as in `list_deletable_runs`. No run is deleted then.
    """
    runs = list_deletable_runs(run_ids)
    return Run.objects.filter(pk__in=[run.pk for run in runs]).update(deleted_at=Now())


def list_deletable_runs(run_ids: Sequence[int]) -> list[Run]:
    """Return these runs, newest first. Call it in a transaction to keep them locked until its end.

    Raises:
        RunActionError: there are no or too many ids, or one of the runs does not exist or has not ended.
    """
    runs = _get_runs(run_ids)
    unfinished = next((run for run in runs if run.state not in Run.ENDED), None)
    if unfinished and unfinished.state == Run.State.CANCELLING:
        raise RunActionError(
            f"Run {unfinished.pk} is being cancelled: wait until its last requests have ended. No run was deleted."
        )
    if unfinished:
        state = unfinished.get_state_display()
        raise RunActionError(f"Run {unfinished.pk} is {state}: cancel it first. No run was deleted.")
    return runs


@transaction.atomic
def _get_runs(run_ids: Sequence[int]) -> list[Run]:
    """Lock these runs and return them, newest first.

    Raises:
        RunActionError: there are no or too many ids, or one of the runs does not exist.
    """
    if not run_ids:
        raise RunActionError("No run is selected; nothing was changed.")
    if len(run_ids) > MAX_RUNS_AT_ONCE:
        raise RunActionError(f"At most {MAX_RUNS_AT_ONCE} runs can be changed at once; nothing was changed.")
    rows = Run.objects.filter(pk__in=run_ids, deleted_at=None).defer("request", "skipped")
    # Runs are locked by id, as lock_finished_runs.sql does, so that two transactions cannot wait for each other.
    runs = list(rows.order_by("pk").select_for_update(no_key=True))[::-1]
    missing_ids = set(run_ids) - {run.pk for run in runs}
    if missing_ids:
        raise RunActionError(f"There is no run {min(missing_ids)}; nothing was changed.")
    return runs
