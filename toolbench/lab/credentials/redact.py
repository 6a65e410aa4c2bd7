"""Overwrite known secrets in stored data: rows of every table and lines of logs, in equal length.

Every field with text, JSON or bytes is searched in every table, so that a new table needs no change here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.apps import apps
from django.db import IntegrityError, models, transaction

from toolbench.lab.credentials.provider_secrets import list_url_secrets
from toolbench.lab.models import (
    ApiToken,
    CellPool,
    PoolState,
    Provider,
    Run,
    ServiceAddress,
    SignInLink,
    Step,
    StepBody,
    Trial,
    TrialText,
)
from toolbench.providers.masking.secrets import Masker

BATCH_ROWS = 500  # read at once
BODY_BATCH_ROWS = 20  # of tables with bodies, each of up to 16 MB
FieldNames = frozenset[str]
if TYPE_CHECKING:
    Fields = dict[str, models.Field[Any, Any]]  # by column

# Where a secret is kept on purpose, encrypted or to be sent.
_KEPT_FIELDS: dict[type[models.Model], FieldNames] = {
    Provider: frozenset(
        {"base_url", "api_prefix", "key_env", "key_encrypted", "headers_encrypted", "header_names", "network_encrypted"}
    )
}
_KEPT_TABLES = (ServiceAddress, SignInLink, ApiToken)
_DERIVED_TABLES = (CellPool,)  # deleted: the next sweep derives them from masked rows
_MASKED_COLUMN = "masked"  # the column that says that a secret was overwritten


@dataclass(frozen=True, slots=True)
class RedactionResult:
    """The number of rows or lines that were searched in one table or file, and of those that held a secret."""

    name: str
    searched: int
    changed: int


def redact_rows(masker: Masker, *, dry_run: bool = False) -> Iterator[RedactionResult]:
    """Yield the result of each table, with one transaction for each batch. With `dry_run` nothing is written."""
    for model in apps.get_app_config("lab").get_models():
        if model not in (*_KEPT_TABLES, *_DERIVED_TABLES) and (fields := _select_fields(model)):
            yield _redact_table(model, fields, masker, dry_run=dry_run)
    if not dry_run:
        _delete_derived_rows()


def redact_logs(masker: Masker, folder: Path, *, dry_run: bool = False) -> Iterator[RedactionResult]:
    """Yield the result of each file below `folder`.

    Lines are overwritten in place, so that a process can go on writing to its log.
    """
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield _redact_file(path, masker, dry_run=dry_run)


def list_providers_with_url_secrets() -> list[str]:
    """Return the names of providers with a secret in the base URL or prefix.

    It is sent with every request, so it is not overwritten.
    """
    return [provider.name for provider in Provider.objects.all() if list_url_secrets(provider)]


@transaction.atomic
def _delete_derived_rows() -> None:
    CellPool.objects.all().delete()
    PoolState.objects.all().delete()
    Run.objects.update(pooled=False)


def _select_fields(model: type[models.Model]) -> "Fields":
    needed = _KEPT_FIELDS.get(model, frozenset())
    kinds = (models.CharField, models.TextField, models.JSONField, models.BinaryField)
    return {
        field.attname: field
        for field in model._meta.concrete_fields
        if isinstance(field, kinds) and field.name not in needed
    }


def _redact_table(model: type[models.Model], fields: "Fields", masker: Masker, *, dry_run: bool) -> RedactionResult:
    rows = model._base_manager.order_by("pk")
    size = BODY_BATCH_ROWS if any(isinstance(field, models.BinaryField) for field in fields.values()) else BATCH_ROWS
    searched, changed, last = 0, 0, None
    while True:
        with transaction.atomic():
            waiting = rows if last is None else rows.filter(pk__gt=last)
            batch = list(waiting.select_for_update().values("pk", *fields)[:size])
            masked = {row["pk"]: _mask_row(row, fields, masker) for row in batch}
            found = {pk: columns for pk, columns in masked.items() if columns}
            if not dry_run:
                _write_masked(model, found)
        if not batch:
            return RedactionResult(model._meta.db_table, searched, changed)
        searched, changed, last = searched + len(batch), changed + len(found), batch[-1]["pk"]


def _mask_row(row: dict[str, Any], fields: "Fields", masker: Masker) -> dict[str, Any]:
    """Return the columns that held a secret, masked."""
    columns: dict[str, Any] = {}
    for name, field in fields.items():
        before = row[name]
        if before in (None, "", b"", [], {}):
            continue
        before = bytes(before) if isinstance(field, models.BinaryField) else before
        after = masker.mask_body(before) if isinstance(before, bytes) else masker.mask_value(before)
        if after is not before:
            columns[name] = after[: field.max_length] if isinstance(after, str) and field.max_length else after
    return columns


def _write_masked(model: type[models.Model], found: dict[Any, dict[str, Any]]) -> None:
    says_so = (
        {_MASKED_COLUMN: True} if any(field.name == _MASKED_COLUMN for field in model._meta.concrete_fields) else {}
    )
    for pk, columns in found.items():
        row = model._base_manager.filter(pk=pk)
        try:
            with transaction.atomic():
                row.update(**columns, **says_so)
        except IntegrityError:  # names that differed in their keys only
            row.update(**_append_number(columns, f" {pk}"), **says_so)
    if model is StepBody and found:
        Step.objects.filter(pk__in=found).update(**{_MASKED_COLUMN: True})
    if model is TrialText:  # its words are indexed apart: both are written anew
        TrialText.objects.filter(pk__in=found).delete()
        Trial.objects.filter(pk__in=found).update(text_stale=True)


def _append_number(columns: dict[str, Any], number: str) -> dict[str, Any]:
    """Return the columns with the number at the end of each text; a text that is long enough keeps its length."""
    return {
        name: value[: -len(number)] + number if isinstance(value, str) else value for name, value in columns.items()
    }


def _redact_file(path: Path, masker: Masker, *, dry_run: bool) -> RedactionResult:
    searched, changed, at = 0, 0, 0
    with path.open("rb" if dry_run else "r+b") as file:
        for line in iter(file.readline, b""):
            searched += 1
            masked = masker.mask(line)
            if masked is not line:
                changed += 1
                if not dry_run:
                    file.seek(at)
                    file.write(masked)
            at += len(line)
            file.seek(at)
    return RedactionResult(str(path), searched, changed)
