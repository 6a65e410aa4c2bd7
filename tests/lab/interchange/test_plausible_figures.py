"""Numbers of imported files are within bounds or unknown, in every column."""

import io
import json
from datetime import datetime
from typing import Any

import pytest
from django.db import models

from tests.extreme_numbers import EXTREME_NUMBERS, iter_number_paths, render_with_literal
from tests.lab.interchange.bundle.test_read import make_small_run
from tests.lab.interchange.bundle_bytes import read_members, reseal_members, write_bundle_bytes
from tests.lab.interchange.inspect_ai.test_log import HEADER, make_sample
from toolbench.engine.bounds import MAX_COST_USD, MAX_DURATION_MS, MAX_TOKENS
from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.plausible_figures import FigureReader
from toolbench.lab.interchange.row_json import InvalidRowError, parse_row
from toolbench.lab.interchange.safe_zip import RunImportError
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, Trial

TABLES: tuple[type[models.Model], ...] = (Run, RunConfig, Cell, Trial, Step, Judgement)
MAX_BY_UNIT = {"tokens": MAX_TOKENS, "cost": MAX_COST_USD, "ms": MAX_DURATION_MS}
TRIAL_NAME = "evidence/trials/000001.json"


def list_numeric_columns(table: type[models.Model]) -> list[str]:
    kinds = (models.IntegerField, models.FloatField)
    return [field.name for field in table._meta.concrete_fields if isinstance(field, kinds) and not field.primary_key]


def is_plausible(name: str, value: Any) -> bool:
    return value is None or 0 <= value <= MAX_BY_UNIT[name.rpartition("_")[2]]


def read_figures(run: Run) -> dict[str, list[Any]]:
    """Return the stored figures of the run's trials and steps by column."""
    rows = [*run.trials.all(), *Step.objects.filter(trial__run=run)]
    pairs = [
        (name, getattr(row, name))
        for row in rows
        for name in list_numeric_columns(type(row))
        if FigureReader.is_figure(name)
    ]
    return {name: [value for key, value in pairs if key == name] for name, _ in pairs}


@pytest.mark.parametrize("table", TABLES)
def test_parse_row_bounds_or_refuses_extreme_numbers(table: type[models.Model]) -> None:
    for name in list_numeric_columns(table):
        for literal in (item for item in EXTREME_NUMBERS if len(item) < 4000):  # longer ones are no JSON for Python
            try:
                columns = parse_row(table, {name: json.loads(literal)}, FigureReader())
            except InvalidRowError:
                continue
            value = columns.get(name)
            assert not FigureReader.is_figure(name) or is_plausible(name, value), (name, literal)
            assert value is None or abs(value) < 2**63 or isinstance(value, float), (name, literal)


@pytest.mark.django_db
@pytest.mark.parametrize("literal", ["-1", "1e9", "1000000001", "1" + "0" * 30, "1.7e308", "NaN", "true", '"7"', "[]"])
def test_import_bundle_with_implausible_figures_stores_none(literal: str) -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    trial = json.loads(members[TRIAL_NAME])
    for part, table in ((trial["trial"], Trial), (trial["steps"][0]["step"], Step)):
        part |= {name: "@" for name in list_numeric_columns(table) if FigureReader.is_figure(name)}
    raw = json.dumps(trial).replace('"@"', literal).encode()
    run = import_run(io.BytesIO(reseal_members(members | {TRIAL_NAME: raw})), "bundle.zip", owner=None)
    found = read_figures(run)
    assert {"cost", "input_tokens", "duration_ms"} <= set(found)
    assert all(is_plausible(name, value) for name, values in found.items() for value in values)
    expected = "cost (2)" in run.origin["note"]  # of the trial and of its step
    assert expected, run.origin["note"]
    assert not run.cells.filter(stale=True).exists()


@pytest.mark.django_db
def test_import_bundle_with_plausible_figures_has_no_note() -> None:
    run = import_run(io.BytesIO(write_bundle_bytes(make_small_run())[0]), "bundle.zip", owner=None)
    assert run.origin["note"] == ""
    assert run.trials.filter(input_tokens=400, duration_ms__gt=1000).count() == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1066-10-14T09:00:00+00:00"]
)
def test_import_bundle_with_an_implausible_date_stores_none(text: str) -> None:
    members = read_members(write_bundle_bytes(make_small_run())[0])
    trial, run_json = json.loads(members[TRIAL_NAME]), json.loads(members["evidence/run.json"])
    trial["trial"] |= {"started_at": text, "finished_at": text}
    run_json["run"] |= {"created_at": text, "finished_at": text}
    changed = {TRIAL_NAME: json.dumps(trial).encode(), "evidence/run.json": json.dumps(run_json).encode()}
    run = import_run(io.BytesIO(reseal_members(members | changed)), "bundle.zip", owner=None)
    first = run.trials.order_by("position")[0]
    assert (first.started_at, first.finished_at, run.finished_at) == (None, None, None)
    assert isinstance(run.created_at, datetime)
    assert "created_at (1)" in run.origin["note"]


# Literals that are within bounds; the input tokens of the two exchanges are added, so 1e9 in one exceeds the limit.
KEPT_LITERALS: dict[str | int, tuple[str, ...]] = {
    "total_time": ("0", "0.5", "null"),
    "working_time": ("0", "0.5", "null"),
    "input_tokens": ("0", "null"),
    "input_tokens_cache_read": ("0", "1e9", "null"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("literal", EXTREME_NUMBERS)
def test_import_log_with_extreme_numbers_stays_within_bounds(literal: str) -> None:
    sample = make_sample(1, total_time=2.5, limit={"type": "time", "limit": 4.0, "reason": "Time limit exceeded"})
    usage = {"input_tokens_cache_read": 4, "reasoning_tokens": 1, "total_cost": 0.1}
    sample |= {"model_usage": {"vendor/model-a": usage}}
    for path in iter_number_paths(sample):
        log = json.dumps(HEADER | {"samples": ["@", make_sample(2)]}).replace(
            '"@"', render_with_literal(sample, path, literal)
        )
        if len(literal) > 4000:  # no JSON for Python
            with pytest.raises(RunImportError):
                import_run(io.BytesIO(log.encode()), "log.json", owner=None)
            continue
        run = import_run(io.BytesIO(log.encode()), "log.json", owner=None)
        assert run.trials.count() == 2
        assert all(is_plausible(name, value) for name, values in read_figures(run).items() for value in values), path
        if path[-1] in KEPT_LITERALS:
            assert ("outside their bounds" in run.origin["note"]) is (literal not in KEPT_LITERALS[path[-1]]), path


@pytest.mark.django_db
def test_import_log_with_implausible_tokens_has_a_finding() -> None:
    sample = make_sample(1)
    text = render_with_literal(sample, ("events", 0, "output", "usage", "input_tokens"), "1e30")
    log = json.dumps(HEADER | {"samples": ["@"]}).replace('"@"', text)
    run = import_run(io.BytesIO(log.encode()), "log.json", owner=None)
    step = Step.objects.filter(trial__run=run, kind="exchange").select_related("body").order_by("ordinal")[0]
    (finding,) = json.loads(bytes(step.body.facts))["findings"]
    assert (finding["code"], finding["path"]) == ("usage_implausible", "$.usage.input_tokens")
    assert (step.input_tokens, step.output_tokens) == (None, 3)
    sentence = "Figures outside their bounds count as unknown, and as 0 in totals: input_tokens (1)."
    assert run.origin["note"].endswith(sentence)
