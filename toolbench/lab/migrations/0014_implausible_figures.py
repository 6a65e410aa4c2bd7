"""Make figures unknown that no answer or file may bring any more (engine/bounds.py), and derive anew what was counted
from them. A trial's tokens have no null: unknown is 0 there, as for an endpoint that says none. Nothing has to be undone
on the way back.

The bounds are written out, since a migration must not change with the code."""

from django.db import migrations

_TOKENS, _COST, _MS = 10**9, 10**6, 7 * 24 * 3600 * 1000
_MOST = {"tokens": _TOKENS, "cost": _COST, "ms": _MS}
_TABLES = {
    "lab_trial": {
        0: "input_tokens output_tokens cached_tokens reasoning_tokens backoff_ms model_ms tool_ms",
        None: "cost duration_ms first_byte_ms first_token_ms first_call_ms client_lag_ms",
    },
    "lab_step": {
        0: "started_ms duration_ms backoff_ms",
        None: "input_tokens output_tokens cost first_byte_ms first_token_ms first_call_ms",
    },
    "lab_probeexchange": {0: "duration_ms", None: "input_tokens output_tokens cost"},
}
_RECOUNT_CELLS = """
UPDATE lab_cell SET stale = true WHERE id IN (
    SELECT cell_id FROM lab_trial WHERE {trials}
    UNION SELECT trial.cell_id FROM lab_step AS step JOIN lab_trial AS trial ON trial.id = step.trial_id WHERE {steps})
"""
# Tokens of a run are those of all its steps, lost executions included; before they are healed, to know which runs.
_RECOUNT_RUNS = """
UPDATE lab_run AS run SET tokens_used = (
    SELECT coalesce(sum(
        CASE WHEN step.input_tokens <= {tokens} THEN step.input_tokens ELSE 0 END::bigint
        + CASE WHEN step.output_tokens <= {tokens} THEN step.output_tokens ELSE 0 END), 0)
    FROM lab_step AS step JOIN lab_trial AS trial ON trial.id = step.trial_id WHERE trial.run_id = run.id)
WHERE id IN (
    SELECT run_id FROM lab_trial WHERE {trials}
    UNION SELECT trial.run_id FROM lab_step AS step JOIN lab_trial AS trial ON trial.id = step.trial_id WHERE {steps})
"""


def _outside(table: str, prefix: str = "") -> str:
    """The condition that some figure of a row lies outside its bounds; NaN is above every number."""
    names = " ".join(_TABLES[table].values()).split()
    return " OR ".join(f"NOT {prefix}{name} BETWEEN 0 AND {_MOST[name.rpartition('_')[2]]}" for name in names)


def _heal(table: str) -> str:
    parts = (
        f"{name} = CASE WHEN {name} BETWEEN 0 AND {_MOST[name.rpartition('_')[2]]} THEN {name}"
        f" ELSE {'NULL' if unknown is None else unknown} END"
        for unknown, names in _TABLES[table].items()
        for name in names.split()
    )
    return f"UPDATE {table} SET {', '.join(parts)} WHERE {_outside(table)}"


_WHERE = {"trials": _outside("lab_trial"), "steps": _outside("lab_step", "step.")}
_STATEMENTS = (
    _RECOUNT_CELLS.format(**_WHERE),
    _RECOUNT_RUNS.format(**_WHERE, tokens=_TOKENS),
    *(_heal(table) for table in _TABLES),
)


class Migration(migrations.Migration):
    dependencies = [
        ("lab", "0013_parity_judged"),
    ]

    operations = [
        migrations.RunSQL(_STATEMENTS, migrations.RunSQL.noop),
    ]
