"""Classification of the causes of stored trials by the current table, or after another verdict. Sends no request."""

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
from toolbench.lab.traces.taxonomy_steps import load_wire_steps

_TRIALS_PER_BATCH = 200
_GRADED_COLUMNS = ("call_expected", "arguments_asked", "arguments_right")
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

_WRITE = load_statement(
    "replays/store_causes",
    assignments=", ".join(f'"{name}" = row."{name}"' for name in CAUSE_COLUMNS),
    typed=", ".join(f'"{name}" {kind}' for name, kind in CAUSE_COLUMNS.items()),
)


def reclassify(*, run_id: int | None = None, again: bool = False) -> tuple[int, int]:
    """Classify finished trials that an older version of the table classified. Imported trials are not changed.

    Args:
        run_id: only trials of this run.
        again: classify all trials, also those of the current version.

    Returns:
        The number of trials classified, and of those whose cause changed.
    """
    done = Trial.objects.filter(state=Trial.State.DONE, run__imported=False)
    if run_id is not None:
        done = done.filter(run_id=run_id)
    if not again:
        done = done.filter(~Q(taxonomy=read_taxonomy_version()))
    looked, changed, last = 0, 0, 0
    while rows := _get_rows(done.filter(pk__gt=last).order_by("pk")[:_TRIALS_PER_BATCH]):
        last = rows[-1]["pk"]
        looked += len(rows)
        changed += _reclassify_rows(rows)
    return looked, changed


def reclassify_trials(trial_ids: Iterable[int]) -> None:
    """Classify these trials again, as after another verdict."""
    left = iter(trial_ids)
    while ids := list(islice(left, _TRIALS_PER_BATCH)):
        _reclassify_rows(_get_rows(Trial.objects.filter(pk__in=ids)))


def _get_rows(trials: QuerySet[Trial]) -> list[dict[str, Any]]:
    """Return the rows with the scenario version of the current verdict, and whether the trial was judged."""
    current = Judgement.objects.filter(trial=OuterRef("pk"), current=True).values("scenario_version")
    rows = trials.annotate(version=Coalesce(Subquery(current), "scenario_version"), judged=~Q(verdict={}))
    return list(rows.values(*_READ_COLUMNS, "version", "judged"))


def _reclassify_rows(rows: Sequence[Mapping[str, Any]]) -> int:
    steps = load_wire_steps([row["pk"] for row in rows])
    find = cache(_find_same_version)
    columns = [_build_columns(row, steps.get(row["pk"], ()), find(row["scenario"], row["version"])) for row in rows]
    written = [
        {"id": row["pk"], "execution": row["execution"], **trial_columns}
        for row, trial_columns in zip(rows, columns, strict=True)
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE, [json.dumps(written)])
        mark_stale(line[0] for line in cursor.fetchall())
    both = zip(rows, columns, strict=True)
    return sum((row["cause"], row["cause_signature"]) != (new["cause"], new["cause_signature"]) for row, new in both)


def _build_columns(row: Mapping[str, Any], steps: Sequence[WireStep], scenario: Scenario | None) -> JsonObject:
    """Return the columns of causes.

    The stored grades are kept if the scenario version that judged does not exist any more.
    """
    if not row["judged"]:
        graded = grade_calls(steps, ExpectedCalls())
    elif scenario is None:
        graded = CallGrades(*(row[name] for name in _GRADED_COLUMNS))
    else:
        graded = grade_calls(
            steps,
            scenario.build_expected_calls(scenario.draw_instance(row["instance_seed"], kind=row["instance_kind"])),
        )
    return build_cause_columns(steps, row, scenario=row["scenario"], graded=graded)


def _find_same_version(slug: str, version: int) -> Scenario | None:
    try:
        found = load_scenario(slug, version)
    except KeyError:
        return None
    return found if found.version == version else None
