"""Actions on several runs at once: label and delete, all of them or none."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models.functions import Now

from toolbench.lab.models import Run
from toolbench.lab.query_params import clean_text
from toolbench.lab.runs.control import RunActionError

MAX_RUNS_AT_ONCE = 200
MAX_LABEL_CHARACTERS = 80


@transaction.atomic
def label_runs(run_ids: Sequence[int], text: str) -> int:
    """Set the label of these runs, "" to remove it; return their number.

    Raises:
        RunActionError: no run is given, or one of them does not exist.
    """
    runs = _get_runs(run_ids)
    return Run.objects.filter(pk__in=[run.pk for run in runs]).update(label=clean_text(text, MAX_LABEL_CHARACTERS))


@transaction.atomic
def delete_runs(run_ids: Sequence[int]) -> int:
    """Hide these runs on all pages; return their number.

    Raises:
        RunActionError: as `list_deletable_runs`; then none is deleted.
    """
    runs = list_deletable_runs(run_ids)
    return Run.objects.filter(pk__in=[run.pk for run in runs]).update(deleted_at=Now())


def list_deletable_runs(run_ids: Sequence[int]) -> list[Run]:
    """Return these runs, newest first, locked if a transaction is open.

    Raises:
        RunActionError: no run is given, one of them does not exist, or one has not ended.
    """
    runs = _get_runs(run_ids)
    unfinished = next((run for run in runs if run.state not in Run.ENDED), None)
    if unfinished:
        state = unfinished.get_state_display()
        raise RunActionError(f"Run {unfinished.pk} is {state}: cancel it first. No run was deleted.")
    return runs


@transaction.atomic
def _get_runs(run_ids: Sequence[int]) -> list[Run]:
    if not run_ids:
        raise RunActionError("No run is selected; nothing was changed.")
    if len(run_ids) > MAX_RUNS_AT_ONCE:
        raise RunActionError(f"At most {MAX_RUNS_AT_ONCE} runs can be changed at once; nothing was changed.")
    chosen = Run.objects.filter(pk__in=run_ids, deleted_at=None).defer("request", "skipped").order_by("-pk")
    runs = list(chosen.select_for_update(no_key=True))
    missing = set(run_ids) - {run.pk for run in runs}
    if missing:
        raise RunActionError(f"There is no run {min(missing)}; nothing was changed.")
    return runs
