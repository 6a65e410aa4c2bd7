"""Rows written by COPY equal rows written by INSERT."""

import pytest
from django.db import DataError, transaction
from django.forms import model_to_dict

from tests.factories import make_cell, make_config, make_run
from toolbench.lab.interchange.copy_rows import copy_rows
from toolbench.lab.models import Step, StepBody, Trial

pytestmark = pytest.mark.django_db


def read_columns(trial: Trial) -> dict[str, object]:
    return {name: value for name, value in model_to_dict(trial).items() if name != "id"}


def build_columns(**fields: object) -> dict[str, object]:
    cell = make_cell(make_config(make_run()))
    keys = {"run_id": cell.run_id, "config_id": cell.config_id, "cell_id": cell.pk}
    plan = {"index": 1, "block": 1, "position": 0, "scenario": "s", "instance_kind": "drawn"}
    return {**keys, **plan, "instance_seed": 7, "seed": 1, **fields}


def test_copy_rows_equals_insert_in_every_column() -> None:
    special_columns = build_columns(
        verdict={"rule": "ä\\\t\n", "n": None}, final_text=b"\\x00\xff\n", cost=0.5, sentence="tab\there\\N"
    )
    (copied,) = copy_rows(Trial, [special_columns])
    inserted = Trial.objects.create(**special_columns)
    assert read_columns(Trial.objects.get(pk=copied)) == read_columns(Trial.objects.get(pk=inserted.pk))
    assert Trial.objects.get(pk=copied).queued_at


def test_copy_rows_returns_keys_in_the_order_of_the_rows() -> None:
    base = build_columns()
    trials = copy_rows(Trial, [{**base, "position": place, "index": place + 1} for place in range(5)])
    place = {"kind": "tool", "execution": 1, "turn": 0, "ordinal": 0, "started_ms": 0, "duration_ms": 0}
    steps = copy_rows(Step, [{**place, "trial_id": pk} for pk in trials])
    assert copy_rows(StepBody, [{"step_id": pk, "request": b"r"} for pk in steps]) == steps
    assert list(Trial.objects.filter(pk__in=trials).order_by("pk").values_list("position", flat=True)) == [*range(5)]
    assert [Step.objects.get(pk=step).trial_id for step in steps] == trials
    assert copy_rows(Trial, []) == []


@pytest.mark.parametrize(
    ("fields", "error"), [({"nothing": 1}, TypeError), ({"index": "x"}, ValueError), ({"cause": "x" * 99}, DataError)]
)
def test_copy_rows_refuses_unknown_columns_and_invalid_values(
    fields: dict[str, object], error: type[Exception]
) -> None:
    with pytest.raises(error), transaction.atomic():
        copy_rows(Trial, [build_columns(**fields)])
    assert not Trial.objects.exists()
