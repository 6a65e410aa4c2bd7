"""Export of a run's trials as a table, without bodies."""

from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.report.write import ReportError
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.metrics.export_table import StreamedTable
from toolbench.lab.metrics.retries import TRIAL_RETRY_COLUMNS, annotate_retry_counts
from toolbench.lab.metrics.times import load_cell_times, times_to_json
from toolbench.lab.models import Run, Trial
from toolbench.lab.models.counters import TRIAL_COUNTERS

_TRIALS_PER_BATCH = 1000  # trials that are loaded at a time
_EXPORTED_NAMES = {
    "pk": "trial_id",
    "config__provider_name": "provider",
    "config__model_name": "model",
    "config__canonical": "canonical_model",
    "config__profile": "sampling_profile",
    "config__strategy": "strategy",
    "config__method": "method",
    "config__examples": "examples",
    "config__tool_use_mode": "tool_use_mode",
    "cell__control": "control",
    "run__simulated": "simulated",
    "taxonomy": "cause_version",
}
_COLUMNS = (
    "pk", "config__provider_name", "config__model_name", "config__canonical", "config__profile", "config__strategy",
    "config__method", "config__examples", "config__tool_use_mode", "scenario", "scenario_version",
    "prompt_version", "cell__control", "run__simulated",
    "index", "position", "state", "outcome", "task_pass", "parity_pass", "end", "failure_class", "category", "sentence",
    "behaviour_seen", "avoided", "instance_kind", "instance_seed", "seed", "seed_sent", "duration_ms", "backoff_ms",
    "model_ms", "tool_ms", "first_byte_ms", "first_token_ms", "first_call_ms", "turns", "requests", "retries",
    "errors_retried", "output_retries", *TRIAL_COUNTERS, "not_executed", "call_expected", "cause",
    "cause_signature", "input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens", "cost", "paths",
    "upstream", "fingerprint", "model_echoed", "answer_hash", "plan_hash", "engine_version", "added_by_hand", "label",
    "left_out", *TRIAL_RETRY_COLUMNS, "taxonomy",
)  # fmt: skip


def export_trials(run_id: int) -> StreamedTable:
    """Return a table of all trials of a run, finished or not, in the order of their positions.

    Its rows are loaded from the database while they are read.

    Raises:
        ReportError: the run does not exist or was deleted.
    """
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise ReportError(f"There is no run {run_id}.")
    notes = ("Simulated models: no figure here was measured on a real model.",) if run.simulated else ()
    rows = annotate_retry_counts(Trial.objects.filter(run=run)).order_by("position").values_list(*_COLUMNS)
    columns = tuple(_EXPORTED_NAMES.get(name, name) for name in _COLUMNS)
    return StreamedTable(
        f"Trials of run {run_id}", notes, columns, rows.iterator(_TRIALS_PER_BATCH), times=_list_times(run)
    )


def _list_times(run: Run) -> tuple[JsonObject, ...]:
    """Recompute the run's stale cells, then return the quantiles of the times of each cell."""
    recompute_all_stale(run.pk)
    cells = tuple(run.cells.select_related("config"))
    times_by_cell = load_cell_times(cells)
    return tuple(
        {"configuration": str(cell.config), "scenario": cell.scenario, "control": cell.control}
        | times_to_json(times_by_cell[cell.pk])
        for cell in cells
    )
