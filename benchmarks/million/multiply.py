"""Fills the database with as many trials as asked for, each a copy of one of the template run's.

`python -m benchmarks.million.multiply RUN TRIALS SEED` writes runs of other models: four of 1,200 cells, the others
smaller, over 90 days. Outcomes, causes, texts and steps are those of the template's trials; times are drawn with a long
tail. One trial in 200 keeps the bytes of its steps. No run is marked as simulated, so that pages count all of them.
"""

import math
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

import benchmarks.django_setup  # noqa: F401
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.models import Cell, Model, Provider, Run, RunConfig, Step, StepBody, Trial, TrialText
from toolbench.lab.traces.search_text import update_search_texts

PROVIDERS, MODELS = 6, 150
LARGE_RUNS = 4
LARGE_CONFIGS, LARGE_SCENARIOS = 150, 8
DAYS = 90
TRIALS_PER_CELL = (3, 5, 5, 10, 10, 10, 20)
BODIES_OF_EVERY = 200
FAMILIES = ("qwen3-coder", "glm-4.7", "llama-4", "mistral-small", "deepseek-v3.2", "gemma-3", "kimi-k2", "phi-4")

_PLAN = """
CREATE TEMP TABLE plan (
    cell_id bigint PRIMARY KEY, run_id bigint, config_id bigint, template_id bigint, trials int, started_at timestamptz,
    median_ms float8, first_trial bigint
)
"""
_POOL = "CREATE TEMP TABLE pool AS SELECT cell_id, array_agg(id ORDER BY id) AS trials FROM lab_trial GROUP BY cell_id"
_TRIALS = """
CREATE TEMP TABLE new_trial AS
SELECT plan.first_trial + number - 1 AS id,
    pool.trials[1 + floor(random() * cardinality(pool.trials))::int] AS template,
    plan.run_id, plan.config_id, plan.cell_id, number AS index,
    plan.started_at + number * interval '20 seconds' AS started_at,
    plan.median_ms * exp(0.45 * sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random()))
        * CASE WHEN random() < 0.02 THEN 8 ELSE 1 END AS duration_ms
FROM plan JOIN pool ON pool.cell_id = plan.template_id, generate_series(1, plan.trials) AS number
"""


def main() -> None:
    template_run, trials, seed = map(int, sys.argv[1:4])
    steps = (_write_plan, _write_trials, _write_steps, _write_texts)
    update_search_texts()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL synchronous_commit = off")
        cursor.execute("SET LOCAL session_replication_role = replica")  # no check of each foreign key
        cursor.execute("SET LOCAL max_parallel_workers_per_gather = 0")
        cursor.execute("SELECT setseed(%s)", [seed / 1000])
        for step in steps:
            began = time.monotonic()
            step(cursor, template_run, trials, Random(seed))
            print(f"{step.__name__}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    began = time.monotonic()
    recompute_all_stale()
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    print(f"counts: {time.monotonic() - began:.0f} s", file=sys.stderr)


def _write_plan(cursor: Any, template_run: int, trials: int, random: Random) -> None:
    """Write runs, configurations and cells, and the table that says what to write for each cell."""
    models = _write_models(random)
    templates = _read_template_cells(template_run)
    personas = sorted({key[:2] for key in templates})
    personas_by_model = {model.pk: random.choice(personas) for model in models}
    run_row, config_row = Run.objects.get(pk=template_run), RunConfig.objects.filter(run=template_run)
    config_by_persona = {(config.model_name, config.strategy): config for config in config_row}
    cursor.execute(_PLAN)
    first_trial, planned = _next_id(cursor, Trial), []
    for chosen_models, scenarios, per_cell, started_at in _iter_runs(models, templates, trials, random):
        run = _write_run(run_row, len(chosen_models) * len(scenarios) * per_cell, started_at)
        configs = RunConfig.objects.bulk_create(
            _copy(config_by_persona[personas_by_model[model.pk]], run=run, **_name(model), position=position)
            for position, model in enumerate(chosen_models)
        )
        cells = Cell.objects.bulk_create(
            _copy(templates[*personas_by_model[model.pk], slug], run=run, config=config, position=position, stale=True)
            for position, (slug, (model, config)) in enumerate(
                (slug, pair) for slug in scenarios for pair in zip(chosen_models, configs, strict=True)
            )
        )
        for cell in cells:
            model_id = cell.config.model_id or 0
            template = templates[*personas_by_model[model_id], cell.scenario]
            median_ms = 400 * math.exp(0.02 * (model_id % 97))
            place = (cell.pk, run.pk, cell.config_id, template.pk)
            planned.append((*place, per_cell, started_at, median_ms, first_trial))
            first_trial += per_cell
    with cursor.copy("COPY plan FROM STDIN") as copy:
        for row in planned:
            copy.write_row(row)


def _iter_runs(
    models: Sequence[Model], templates: Mapping[tuple[str, str, str], Cell], trials: int, random: Random
) -> Iterator[tuple[Sequence[Model], Sequence[str], int, datetime]]:
    """Yield models, scenarios, trials per cell and start of each run until the runs hold enough trials."""
    slugs = sorted({slug for _, _, slug in templates})
    start, number, written = timezone.now() - timedelta(days=DAYS), 0, 0
    while written < trials:
        is_large = number < LARGE_RUNS
        configs = LARGE_CONFIGS if is_large else min(len(models), max(1, int(random.lognormvariate(2.5, 1))))
        scenarios = LARGE_SCENARIOS if is_large else random.randint(1, LARGE_SCENARIOS)
        per_cell = 10 if is_large else random.choice(TRIALS_PER_CELL)
        started_at = start + timedelta(days=DAYS * written / trials)
        yield random.sample(list(models), configs), random.sample(slugs, scenarios), per_cell, started_at
        written += configs * scenarios * per_cell
        number += 1


def _write_models(random: Random) -> list[Model]:
    providers = Provider.objects.bulk_create(
        Provider(name=f"Provider {number}", base_url=f"http://provider-{number}.test") for number in range(PROVIDERS)
    )
    names = [f"{random.choice(FAMILIES)}-{number}" for number in range(MODELS)]
    return Model.objects.bulk_create(
        Model(provider=random.choice(providers), name=f"vendor/{name}", canonical=name) for name in names
    )


def _read_template_cells(template_run: int) -> dict[tuple[str, str, str], Cell]:
    cells = Cell.objects.filter(run=template_run, passed__gt=0).select_related("config")
    found = {(cell.config.model_name, cell.config.strategy, cell.scenario): cell for cell in cells}
    slugs = {slug for _, _, slug in found}
    whole = {key[:2] for key in found if all((*key[:2], slug) in found for slug in slugs)}
    return {key: cell for key, cell in found.items() if key[:2] in whole}


def _write_run(template: Run, trials: int, started_at: datetime) -> Run:
    run: Run = _copy(template, simulated=False, trial_count=trials, title="", state=Run.State.FINISHED)
    run.save()
    Run.objects.filter(pk=run.pk).update(created_at=started_at, finished_at=started_at + timedelta(minutes=20))
    return run


def _name(model: Model) -> dict[str, Any]:
    provider = model.provider
    named = {"provider_name": provider.name, "provider_kind": provider.kind, "model_name": model.name}
    return {
        "provider": provider,
        "model": model,
        "canonical": model.canonical,
        **named,
        "service": "",
        "true_rates": {},
    }


def _copy(row: Any, **changes: Any) -> Any:
    values = {
        field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields if not field.primary_key
    }
    copied = type(row)(**values)
    for name, value in changes.items():
        setattr(copied, name, value)
    return copied


def _write_trials(cursor: Any, template_run: int, trials: int, random: Random) -> None:
    cursor.execute(_POOL)
    cursor.execute(_TRIALS)
    cursor.execute("CREATE INDEX ON new_trial (template); CREATE INDEX ON new_trial (id); ANALYZE new_trial")
    new = ("id", "run_id", "config_id", "cell_id", "index", "started_at", "duration_ms")
    changes = {name: f"new.{name}" for name in new} | {
        "block": "new.index",
        "position": "new.index * 1000 + new.cell_id % 1000",
        "provider_id": "NULL",
        "text_stale": "false",
        "model_ms": "new.duration_ms * 0.9",
        "tool_ms": "new.duration_ms * 0.02",
        "first_byte_ms": "new.duration_ms * 0.3",
        "queued_at": "new.started_at",
        "finished_at": "new.started_at + new.duration_ms * interval '1 millisecond'",
    }
    _copy_rows(cursor, Trial, "old JOIN new_trial AS new ON new.template = old.id", changes)


def _write_steps(cursor: Any, template_run: int, trials: int, random: Random) -> None:
    source = """old JOIN new_trial AS new ON new.template = old.trial_id
        JOIN lab_trial AS trial ON trial.id = new.template"""
    scale = "new.duration_ms / greatest(trial.duration_ms, 0.001)"
    changes = {"trial_id": "new.id", "execution": "trial.execution"}
    changes |= {name: f"old.{name} * {scale}" for name in ("started_ms", "duration_ms", "first_byte_ms")}
    _copy_rows(cursor, Step, source, {**changes, "id": None})
    source = f"""old JOIN lab_step AS step ON step.id = old.step_id
        JOIN new_trial AS new ON new.template = step.trial_id
        JOIN lab_step AS copied ON copied.trial_id = new.id AND copied.execution = step.execution
            AND copied.ordinal = step.ordinal
        WHERE new.id % {BODIES_OF_EVERY} = 0"""
    _copy_rows(cursor, StepBody, source, {"step_id": "copied.id"})


def _write_texts(cursor: Any, template_run: int, trials: int, random: Random) -> None:
    """Copy the search texts; each also has its trial's number as a word, which no other has."""
    source = "old JOIN new_trial AS new ON new.template = old.trial_id"
    number = "' ' || new.id"
    words = f"old.words || to_tsvector('simple', {number})"
    _copy_rows(cursor, TrialText, source, {"trial_id": "new.id", "text": f"old.text || {number}", "words": words})


def _copy_rows(cursor: Any, model: Any, source: str, changes: Mapping[str, str | None]) -> None:
    """Insert a copy of each row of `source` with some columns changed; None leaves a column to its default."""
    columns = [field.column for field in model._meta.concrete_fields]
    values = {name: changes.get(name, f'old."{name}"') for name in columns}
    kept = {name: value for name, value in values.items() if value is not None}
    table, names = model._meta.db_table, ", ".join(f'"{name}"' for name in kept)
    cursor.execute(f"INSERT INTO {table} ({names}) SELECT {', '.join(kept.values())} FROM {table} AS {source}")
    if "id" in columns:
        cursor.execute(f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}")


def _next_id(cursor: Any, model: Any) -> int:
    cursor.execute(f"SELECT coalesce(max(id), 0) + 1 FROM {model._meta.db_table}")
    return int(cursor.fetchone()[0])


if __name__ == "__main__":
    main()
