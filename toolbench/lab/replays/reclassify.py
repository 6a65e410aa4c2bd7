"""Classification of stored trials by the current table of causes. No request is sent."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from toolbench.engine.types import JsonObject
from toolbench.evals.causes.step_types import WireStep
from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.evals.expected_calls import CallGrades, ExpectedCalls, grade_calls
from toolbench.evals.types import Scenario
from toolbench.lab.metrics.cells import mark_stale
from toolbench.lab.models import Judgement, Trial
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.cause_columns import CAUSE_COLUMNS, build_cause_columns
from toolbench.lab.traces.removed_bodies import WITH_BODIES
from toolbench.lab.traces.taxonomy_steps import load_wire_steps

_TRIALS_PER_BATCH = 200
_GRADED_COLUMNS = ("call_expected", "arguments_asked", "arguments_right", "wrong_paths")
_READ_COLUMNS = (
    "pk",
    "execution",
    "scenario",
    "instance_kind",
    "instance_seed",
    "outcome",
    "end",
    "failure_class",
    "cause",
    "cause_signature",
    *_GRADED_COLUMNS,
)

_STORE_CAUSES = load_statement(
    "replays/store_causes",
    assignments=", ".join(f'"{name}" = row."{name}"' for name in CAUSE_COLUMNS),
    typed=", ".join(f'"{name}" {column_type}' for name, column_type in CAUSE_COLUMNS.items()),
)


def reclassify(*, run_id: int | None = None, again: bool = False) -> tuple[int, int]:
    """Classify finished trials that were not classified by the current table.

    Imported trials and trials whose bodies were removed are not changed.

    Args:
        run_id: classify only trials of this run; None for all runs.
        again: also classify trials that the current table classified.

    Returns:
        The number of trials that were classified, and of those whose cause or cause signature changed.
    """
    trials = Trial.objects.filter(WITH_BODIES, state=Trial.State.DONE, run__imported=False)
    if run_id is not None:
        trials = trials.filter(run_id=run_id)
    if not again:
        trials = trials.filter(~Q(taxonomy=read_taxonomy_version()))
    classified, changed, last_id = 0, 0, 0
    while rows := _get_rows(trials.filter(pk__gt=last_id).order_by("pk")[:_TRIALS_PER_BATCH]):
        last_id = rows[-1]["pk"]
        classified += len(rows)
        changed += _reclassify_rows(rows)
    return classified, changed


def reclassify_trials(trial_ids: Iterable[int]) -> None:
    """Classify these trials again. Call it after their verdict has changed.

    Trials whose bodies were removed are left out.
    """
    remaining_ids = iter(trial_ids)
    while ids := list(islice(remaining_ids, _TRIALS_PER_BATCH)):
        _reclassify_rows(_get_rows(Trial.objects.filter(WITH_BODIES, pk__in=ids)))


def _get_rows(trials: QuerySet[Trial]) -> list[dict[str, Any]]:
    """Return _READ_COLUMNS, `version` and `judged` of each trial.

    `version` is the scenario version of the current verdict, `judged` whether the trial has a verdict.
    """
    judgements = Judgement.objects.filter_last_executions()
    current = judgements.filter(trial=OuterRef("pk"), current=True).values("scenario_version")
    rows = trials.annotate(version=Coalesce(Subquery(current), "scenario_version"), judged=~Q(verdict={}))
    return list(rows.values(*_READ_COLUMNS, "version", "judged"))


def _reclassify_rows(rows: Sequence[Mapping[str, Any]]) -> int:
    """Store the causes of these trials; return how many have another cause or cause signature than before."""
    steps = load_wire_steps([row["pk"] for row in rows])
    find_scenario = cache(_find_scenario)
    columns = [
        _build_columns(row, steps.get(row["pk"], ()), find_scenario(row["scenario"], row["version"])) for row in rows
    ]
    new_rows = [
        {"id": row["pk"], "execution": row["execution"], **trial_columns}
        for row, trial_columns in zip(rows, columns, strict=True)
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_STORE_CAUSES, [json.dumps(new_rows)])
        mark_stale(result[0] for result in cursor.fetchall())
    pairs = zip(rows, columns, strict=True)
    return sum((row["cause"], row["cause_signature"]) != (new["cause"], new["cause_signature"]) for row, new in pairs)


def _build_columns(row: Mapping[str, Any], steps: Sequence[WireStep], scenario: Scenario | None) -> JsonObject:
    """Return the columns of causes. In a trial without a verdict, no call counts as expected.

    Args:
        row: the stored columns of the trial.
        steps: its exchanges and tool calls.
        scenario: the scenario version that judged it; None if it no longer exists. The stored grades are then kept.
    """
    if not row["judged"]:
        grades = grade_calls(steps, ExpectedCalls())
    elif scenario is None:
        grades = CallGrades(*(row[name] for name in _GRADED_COLUMNS))
    else:
        grades = grade_calls(
            steps,
            scenario.build_expected_calls(scenario.draw_instance(row["instance_seed"], kind=row["instance_kind"])),
        )
    return build_cause_columns(steps, row, scenario=row["scenario"], grades=grades)


def _find_scenario(slug: str, version: int) -> Scenario | None:
    """Return the scenario in exactly this version; None if it does not exist."""
    try:
        scenario = load_scenario(slug, version)
    except KeyError:
        return None
    return scenario if scenario.version == version else None
