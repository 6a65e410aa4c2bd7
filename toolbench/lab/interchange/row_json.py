"""Conversion of database rows to JSON and back, without columns that are private or specific to an installation."""

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models

from toolbench.engine.types import JsonObject
from toolbench.lab.interchange.json_shapes import are_valid_details, is_valid_column
from toolbench.lab.interchange.plausible_figures import FigureReader
from toolbench.lab.models import Cell, Judgement, Run, RunConfig, Step, StepBody, Trial

# These columns are not exported: labels and notes of trials are private; leases, workers, times in the queue and the
# choice to keep bodies have no meaning in another installation; the import computes counts and search texts again.
_OMITTED_COLUMNS: Mapping[type[models.Model], frozenset[str]] = {
    Run: frozenset(
        {
            "trial_count",
            "purpose",
            "deleted_at",
            "imported",
            "origin",
            "pooled",
            "alerts_checked_at",
            "keeps_bodies",
        }
    ),
    RunConfig: frozenset(),
    Trial: frozenset(
        {"state", "lease", "lease_until", "worker", "backing_off", "queued_at", "label", "note", "text_stale"}
    ),
    Step: frozenset(),
    StepBody: frozenset(),
    Judgement: frozenset(),
}
_EXPORTED_CELL_COLUMNS = {
    "scenario",
    "scenario_version",
    "scenario_group",
    "control",
    "instance_kind",
    "deterministic",
    "position",
    "error",
    "decided",
}


class InvalidRowError(ValueError):
    """Row that cannot be stored; the message gives the reason."""


def row_to_json(row: models.Model) -> JsonObject:
    """Return the values of a row's exported columns by column name; bytes have the form of `encode_bytes`.

    A column with its default value is left out. So the hash of an old row stays the same when a later version adds a
    column.
    """
    values = ((field, getattr(row, field.name)) for field in _list_exported_fields(type(row)))
    return {field.name: _value_to_json(value) for field, value in values if value != field.get_default()}


def parse_row(model: type[models.Model], document: object, figure_reader: FigureReader) -> dict[str, Any]:
    """Return the column values of a new row, by column name.

    Unknown keys are ignored; missing keys stay missing, so their columns get defaults.

    Args:
        model: the model of the row.
        document: the parsed JSON of the row.
        figure_reader: reads tokens, costs and times. An implausible figure becomes None, or 0 in a column that is not
            nullable; an implausible time becomes None.

    Raises:
        InvalidRowError: the document is not an object, or a column cannot store its value.
    """
    if not isinstance(document, dict):
        raise InvalidRowError(f"a {model.__name__.lower()} is not an object")
    return {
        field.name: _parse_value(field, document[field.name], figure_reader)
        for field in _list_exported_fields(model)
        if field.name in document
    }


def encode_bytes(content: bytes | memoryview | None) -> JsonObject | None:
    """Return `{"text": …}` if the bytes are UTF-8, else `{"base64": …}`; None for None."""
    if content is None:
        return None
    try:
        return {"text": bytes(content).decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode("ascii")}


def decode_bytes(document: object) -> bytes | None:
    """Return the bytes that `encode_bytes` encoded; None for None.

    Raises:
        InvalidRowError: `document` has no string `text` and no string with valid base64 in `base64`.
    """
    if document is None:
        return None
    match document:
        case {"text": str(text)}:
            return text.encode("utf-8", "surrogatepass")
        case {"base64": str(text)}:
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError) as error:
                raise InvalidRowError(f"bytes are not base64: {error}") from error
    raise InvalidRowError("bytes are neither text nor base64")


def _list_exported_fields(model: type[models.Model]) -> "tuple[models.Field[Any, Any], ...]":
    fields = (field for field in model._meta.concrete_fields if not field.is_relation and not field.primary_key)
    if model is Cell:
        return tuple(field for field in fields if field.name in _EXPORTED_CELL_COLUMNS)
    return tuple(field for field in fields if field.name not in _OMITTED_COLUMNS[model])


def _value_to_json(value: Any) -> Any:
    if isinstance(value, bytes | memoryview):
        return encode_bytes(value)
    return value.isoformat() if isinstance(value, datetime) else value


def _parse_value(field: "models.Field[Any, Any]", json_value: Any, figure_reader: FigureReader) -> Any:
    """Parse the JSON value of a column.

    Raises:
        InvalidRowError: the value has the wrong type, or the column cannot store it.
    """
    if isinstance(field, models.BinaryField):
        content = decode_bytes(json_value)
        if field.name == "facts" and not are_valid_details(content or b""):
            raise InvalidRowError("facts has the wrong shape")
        return content
    if json_value is None:
        if not field.null:
            raise InvalidRowError(f"{field.name} is empty")
        return None
    if figure_reader.is_figure(field.name):
        figure = figure_reader.read(field.name, json_value)
        return 0 if figure is None and not field.null else figure
    _check_type(field, json_value)
    try:
        value = field.to_python(json_value)
        field.run_validators(value)
    except (ValidationError, OverflowError) as error:
        raise InvalidRowError(f"{field.name} cannot be stored: {error}") from error
    if isinstance(value, datetime):
        return figure_reader.read_time(field.name, value)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRowError(f"{field.name} is not a finite number")
    if field.choices and value not in ("", *(key for key, _ in field.flatchoices)):
        raise InvalidRowError(f"{field.name} has an unknown value")
    return value


def _check_type(field: "models.Field[Any, Any]", json_value: Any) -> None:
    """Check that the JSON type of a value fits its column.

    A text or time column takes a string, a JSON column a value of its shape, any other column a number or a Boolean.

    Raises:
        InvalidRowError: the value does not fit.
    """
    is_text_column = isinstance(field, models.CharField | models.TextField | models.DateTimeField)
    if not isinstance(field, models.JSONField) and isinstance(json_value, str) != is_text_column:
        raise InvalidRowError(f"{field.name} has the wrong type")
    if (
        isinstance(field, models.JSONField)
        and field.default in (dict, list)
        and not isinstance(json_value, field.default)
    ):
        raise InvalidRowError(f"{field.name} has the wrong shape")
    if isinstance(field, models.JSONField) and not is_valid_column(field.name, json_value):
        raise InvalidRowError(f"{field.name} has the wrong shape")
    if isinstance(json_value, list | dict) and not isinstance(field, models.JSONField):
        raise InvalidRowError(f"{field.name} has the wrong type")
