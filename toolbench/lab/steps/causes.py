"""What a trial's steps show, as columns: written when it ends, and again for stored trials when the taxonomy has
changed."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import islice
from typing import Any

from django.db import connection, transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce

from toolbench.engine.messages import JsonObject
from toolbench.evals.causes.classifying import Ending, Seen, cause_of, cause_signature, grouped, occurrences
from toolbench.evals.causes.measures import step_counts
from toolbench.evals.causes.wire_causes import taxonomy_version
from toolbench.evals.causes.wire_steps import WireStep
from toolbench.evals.due import Due, Graded, grade
from toolbench.evals.trials import Scenario
from toolbench.lab.counts.cells import mark_stale
from toolbench.lab.models import Judgement, Trial
from toolbench.lab.planning.known_scenarios import find_scenario
from toolbench.lab.steps.facts import column_json, column_text
from toolbench.lab.steps.stored_steps import stored_steps

COLUMNS = {
    "failed_calls": "integer",
    "missing_calls": "integer",
    "type_calls": "integer",
    "enum_calls": "integer",
    "range_calls": "integer",
    "extra_calls": "integer",
    "answered_turns": "integer",
    "good_turns": "integer",
    "final_answers": "integer",
    "empty_finals": "integer",
    "call_expected": "boolean",
    "arguments_asked": "integer",
    "arguments_right": "integer",
    "cause": "text",
    "cause_signature": "text",
    "causes": "jsonb",
    "taxonomy": "smallint",
}
MOST_SEEN = 40  # kinds of causes kept of one trial
_ROWS = 200

_WRITE = f"""
UPDATE lab_trial AS trial SET {", ".join(f'"{name}" = row."{name}"' for name in COLUMNS)}
FROM json_to_recordset(%s::json) AS row(id bigint, execution integer,
    {", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())})
WHERE trial.id = row.id AND trial.state = 'done' AND trial.execution = row.execution
RETURNING trial.cell_id
"""


def cause_columns(
    steps: Sequence[WireStep], trial: Mapping[str, object], *, scenario: str, graded: Graded
) -> JsonObject:
    """COLUMNS of a finished trial. `trial` holds outcome, end and failure_class."""
    found = occurrences(steps)
    ending = Ending(str(trial["outcome"]), str(trial["end"]), str(trial["failure_class"]), graded.call_expected)
    cause = cause_of(steps, found, ending)
    return {
        **step_counts(steps, found),
        "call_expected": graded.call_expected,
        "arguments_asked": graded.asked,
        "arguments_right": graded.right,
        "cause": cause.code if cause else "",
        "cause_signature": column_text(cause_signature(cause, scenario), 240) if cause else "",
        "causes": [_kept(one) for one in grouped(found)[:MOST_SEEN]],
        "taxonomy": taxonomy_version(),
    }


def reclassify(*, run_id: int | None = None, again: bool = False) -> tuple[int, int]:
    """Looks at every finished trial that an older version of the taxonomy looked at, or at all of them; sends nothing.
    Imported trials stay as they came. Returns how many were looked at and how many of them have another cause than
    before."""
    done = Trial.objects.filter(state=Trial.State.DONE, run__imported=False)
    if run_id is not None:
        done = done.filter(run_id=run_id)
    if not again:
        done = done.filter(~Q(taxonomy=taxonomy_version()))
    looked, changed, last = 0, 0, 0
    while rows := _rows(done.filter(pk__gt=last).order_by("pk")[:_ROWS]):
        last = rows[-1]["pk"]
        looked += len(rows)
        changed += _reclassify(rows)
    return looked, changed


def reclassify_trials(trial_ids: Iterable[int]) -> None:
    """Looks at these again, as after another verdict."""
    left = iter(trial_ids)
    while ids := list(islice(left, _ROWS)):
        _reclassify(_rows(Trial.objects.filter(pk__in=ids)))


_GRADED = ("call_expected", "arguments_asked", "arguments_right")
_READ = (
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
    *_GRADED,
)


def _rows(trials: QuerySet[Trial]) -> list[dict[str, Any]]:
    """With the version of the scenario that judged last, and whether anybody judged."""
    current = Judgement.objects.filter(trial=OuterRef("pk"), current=True).values("scenario_version")
    rows = trials.annotate(version=Coalesce(Subquery(current), "scenario_version"), judged=~Q(verdict={}))
    return list(rows.values(*_READ, "version", "judged"))


def _reclassify(rows: Sequence[Mapping[str, Any]]) -> int:
    steps = stored_steps([row["pk"] for row in rows])
    find = cache(_scenario_as_it_was)
    columns = [_columns(row, steps.get(row["pk"], ()), find(row["scenario"], row["version"])) for row in rows]
    written = [
        {"id": row["pk"], "execution": row["execution"], **some} for row, some in zip(rows, columns, strict=True)
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE, [json.dumps(written)])
        mark_stale(line[0] for line in cursor.fetchall())
    both = zip(rows, columns, strict=True)
    return sum((row["cause"], row["cause_signature"]) != (new["cause"], new["cause_signature"]) for row, new in both)


def _columns(row: Mapping[str, Any], steps: Sequence[WireStep], scenario: Scenario | None) -> JsonObject:
    """What is due stays as it was written where the scenario is no longer the one that judged."""
    if not row["judged"]:
        graded = grade(steps, Due())
    elif scenario is None:
        graded = Graded(*(row[name] for name in _GRADED))
    else:
        graded = grade(steps, scenario.due(scenario.draw(row["instance_seed"], kind=row["instance_kind"])))
    return cause_columns(steps, row, scenario=row["scenario"], graded=graded)


def _scenario_as_it_was(slug: str, version: int) -> Scenario | None:
    try:
        found = find_scenario(slug, version)
    except KeyError:
        return None
    return found if found.version == version else None


def _kept(seen: Seen) -> JsonObject:
    kept: JsonObject = column_json(asdict(seen))
    return {**kept, "path": column_text(seen.path, 300)}
