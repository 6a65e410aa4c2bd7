"""What a trial's steps show, as columns: written when it ends, and again for stored trials when the taxonomy has
changed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from django.db import connection, transaction
from django.db.models import Q

from toolbench.engine.messages import JsonObject
from toolbench.evals import scenarios
from toolbench.evals.classifying import Ending, Seen, cause_of, cause_signature, grouped, occurrences
from toolbench.evals.measures import arguments_judged, call_is_expected, step_counts
from toolbench.evals.wire_causes import taxonomy_version
from toolbench.evals.wire_steps import WireStep
from toolbench.lab.cells import mark_stale
from toolbench.lab.facts import column_json, column_text
from toolbench.lab.models import Trial
from toolbench.lab.stored_steps import stored_steps

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


def cause_columns(steps: Sequence[WireStep], trial: Mapping[str, object], scenario: str) -> JsonObject:
    """COLUMNS of a finished trial. `trial` holds outcome, end, failure_class and verdict."""
    found = occurrences(steps)
    expected = call_is_expected(steps, control=_is_control(scenario))
    ending = Ending(str(trial["outcome"]), str(trial["end"]), str(trial["failure_class"]), expected)
    cause = cause_of(steps, found, ending)
    verdict = trial.get("verdict")
    checks = verdict.get("checks") if isinstance(verdict, dict) else None
    asked, right = arguments_judged(checks or ())
    return {
        **step_counts(steps, found),
        "call_expected": expected,
        "arguments_asked": asked,
        "arguments_right": right,
        "cause": cause.code if cause else "",
        "cause_signature": column_text(cause_signature(cause, scenario), 240) if cause else "",
        "causes": [_kept(one) for one in grouped(found)[:MOST_SEEN]],
        "taxonomy": taxonomy_version(),
    }


def reclassify(*, run_id: int | None = None, again: bool = False) -> tuple[int, int]:
    """Looks at every finished trial that an older version of the taxonomy looked at, or at all of them; sends nothing.
    Returns how many were looked at and how many of them have another cause than before."""
    done = Trial.objects.filter(state=Trial.State.DONE)
    if run_id is not None:
        done = done.filter(run_id=run_id)
    if not again:
        done = done.filter(~Q(taxonomy=taxonomy_version()))
    looked, changed, last = 0, 0, 0
    while rows := list(done.filter(pk__gt=last).order_by("pk").values(*_READ)[:_ROWS]):
        last = rows[-1]["pk"]
        looked += len(rows)
        changed += _reclassify(rows)
    return looked, changed


_READ = ("pk", "execution", "scenario", "outcome", "end", "failure_class", "verdict", "cause", "cause_signature")


def _reclassify(rows: Sequence[Mapping[str, object]]) -> int:
    steps = stored_steps([int(str(row["pk"])) for row in rows])
    columns = [cause_columns(steps.get(int(str(row["pk"])), ()), row, str(row["scenario"])) for row in rows]
    written = [
        {"id": row["pk"], "execution": row["execution"], **some} for row, some in zip(rows, columns, strict=True)
    ]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_WRITE, [json.dumps(written)])
        mark_stale(line[0] for line in cursor.fetchall())
    both = zip(rows, columns, strict=True)
    return sum((row["cause"], row["cause_signature"]) != (new["cause"], new["cause_signature"]) for row, new in both)


def _kept(seen: Seen) -> JsonObject:
    kept: JsonObject = column_json(asdict(seen))
    return {**kept, "path": column_text(seen.path, 300)}


def _is_control(slug: str) -> bool:
    """False for a scenario that is no longer there."""
    try:
        return scenarios.find(slug).control
    except KeyError:
        return False
