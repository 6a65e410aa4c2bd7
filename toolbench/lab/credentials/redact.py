"""Redaction of known secrets in the tables of the app `lab` and in log files.

Each secret is overwritten by text with as many bytes. Every field with text, JSON or bytes is searched, except those in
`_SKIPPED_FIELDS`, `_SKIPPED_TABLES` and `_DERIVED_TABLES`. So a new table needs no change here.
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
    CausePool,
    CellPool,
    GatewayTrace,
    GatewayTraceText,
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

BATCH_ROWS = 500
BODY_BATCH_ROWS = 20  # for tables with bodies, since a body may have 16 MB
FieldNames = frozenset[str]
if TYPE_CHECKING:
    Fields = dict[str, models.Field[Any, Any]]  # by column name

# Fields and tables that are not searched, since requests and sign-ins need their contents unchanged.
_SKIPPED_FIELDS: dict[type[models.Model], FieldNames] = {
    Provider: frozenset(
        {"base_url", "api_prefix", "key_env", "key_encrypted", "headers_encrypted", "header_names", "network_encrypted"}
    )
}
_SKIPPED_TABLES = (ServiceAddress, SignInLink, ApiToken)
_DERIVED_TABLES = (CellPool, CausePool)  # their rows are deleted; the next sweep computes them from redacted rows
# Tables of search texts, each with the table that its texts are made from.
_TEXT_OWNERS: "dict[type[models.Model], type[models.Model]]" = {TrialText: Trial, GatewayTraceText: GatewayTrace}
_MASKED_COLUMN = "masked"  # True if a secret was masked in the row


@dataclass(frozen=True, slots=True)
class RedactionResult:
    """Result for one table or file.

    Attributes:
        name: name of the table or path of the file.
        searched: number of rows or lines that were searched.
        changed: number of rows or lines that contained a secret.
    """

    name: str
    searched: int
    changed: int


def redact_rows(masker: Masker, *, dry_run: bool = False) -> Iterator[RedactionResult]:
    """Redact all tables, with one transaction for each batch, and yield the result of each table.

    Skipped and derived tables have no result. After the last result, the rows of `_DERIVED_TABLES` are deleted,
    unless `dry_run` is True.

    Args:
        masker: finds and masks the secrets.
        dry_run: whether to count only, without writing.
    """
    for model in apps.get_app_config("lab").get_models():
        if model not in (*_SKIPPED_TABLES, *_DERIVED_TABLES) and (fields := _select_fields(model)):
            yield _redact_table(model, fields, masker, dry_run=dry_run)
    if not dry_run:
        _delete_derived_rows()


def redact_logs(masker: Masker, folder: Path, *, dry_run: bool = False) -> Iterator[RedactionResult]:
    """Redact all files below `folder` and yield the result of each file.

    Lines are overwritten in place, so that a process can continue to write to its log.

    Args:
        masker: finds and masks the secrets.
        folder: is searched with its subfolders; symbolic links are skipped.
        dry_run: whether to count only, without writing.
    """
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and not path.is_symlink():
            yield _redact_file(path, masker, dry_run=dry_run)


def list_providers_with_url_secrets() -> list[str]:
    """Return the names of providers with a possible secret in the base URL or prefix.

    Such secrets are not redacted, since requests need them.
    """
    return [provider.name for provider in Provider.objects.all() if list_url_secrets(provider)]


@transaction.atomic
def _delete_derived_rows() -> None:
    for model in _DERIVED_TABLES:
        model._base_manager.all().delete()
    PoolState.objects.all().delete()
    Run.objects.update(pooled=False)


def _select_fields(model: type[models.Model]) -> "Fields":
    """Return the fields of a table that have to be searched."""
    skipped = _SKIPPED_FIELDS.get(model, frozenset())
    field_types = (models.CharField, models.TextField, models.JSONField, models.BinaryField)
    return {
        field.attname: field
        for field in model._meta.concrete_fields
        if isinstance(field, field_types) and field.name not in skipped
    }


def _redact_table(model: type[models.Model], fields: "Fields", masker: Masker, *, dry_run: bool) -> RedactionResult:
    """Redact the rows of one table in batches, in the order of their primary keys."""
    rows = model._base_manager.order_by("pk")
    batch_rows = BODY_BATCH_ROWS if _has_bodies(fields) else BATCH_ROWS
    searched, changed, last_id = 0, 0, None
    while True:
        with transaction.atomic():
            remaining = rows if last_id is None else rows.filter(pk__gt=last_id)
            batch = list(remaining.select_for_update().values("pk", *fields)[:batch_rows])
            masked = {row["pk"]: _mask_row(row, fields, masker) for row in batch}
            changed_rows = {pk: columns for pk, columns in masked.items() if columns}
            if not dry_run:
                _write_masked(model, changed_rows)
        if not batch:
            return RedactionResult(model._meta.db_table, searched, changed)
        searched, changed, last_id = searched + len(batch), changed + len(changed_rows), batch[-1]["pk"]


def _has_bodies(fields: "Fields") -> bool:
    return any(isinstance(field, models.BinaryField) for field in fields.values())


def _mask_row(row: dict[str, Any], fields: "Fields", masker: Masker) -> dict[str, Any]:
    """Return the masked values of the columns that contained a secret."""
    columns: dict[str, Any] = {}
    for name, field in fields.items():
        before = row[name]
        if before in (None, "", b"", [], {}):
            continue
        before = bytes(before) if isinstance(field, models.BinaryField) else before
        after = masker.mask_body(before) if isinstance(before, bytes) else masker.mask_value(before)
        if after is not before:
            # A star replaces each byte, so a masked text with characters beyond ASCII may exceed the column's length.
            columns[name] = after[: field.max_length] if isinstance(after, str) and field.max_length else after
    return columns


def _write_masked(model: type[models.Model], changed_rows: dict[Any, dict[str, Any]]) -> None:
    """Write the masked columns of each row, by primary key, and set its column `masked` if it has one."""
    has_masked_column = any(field.name == _MASKED_COLUMN for field in model._meta.concrete_fields)
    masked_flag = {_MASKED_COLUMN: True} if has_masked_column else {}
    for pk, columns in changed_rows.items():
        row = model._base_manager.filter(pk=pk)
        try:
            with transaction.atomic():
                row.update(**columns, **masked_flag)
        except IntegrityError:  # unique names that differed only in the secret
            row.update(**_replace_ends(columns, f" {pk}"), **masked_flag)
    if model is StepBody and changed_rows:
        Step.objects.filter(pk__in=changed_rows).update(**{_MASKED_COLUMN: True})
    if owner := _TEXT_OWNERS.get(model):  # the sweep writes text and search words again
        model._base_manager.filter(pk__in=changed_rows).delete()
        owner._base_manager.filter(pk__in=changed_rows).update(text_stale=True)


def _replace_ends(columns: dict[str, Any], suffix: str) -> dict[str, Any]:
    """Return the columns with `suffix` in place of the last characters of each text.

    A text that is shorter than `suffix` is replaced by it.
    """
    return {
        name: value[: -len(suffix)] + suffix if isinstance(value, str) else value for name, value in columns.items()
    }


def _redact_file(path: Path, masker: Masker, *, dry_run: bool) -> RedactionResult:
    """Overwrite the lines of one file that contain a secret with masked lines of the same length."""
    searched, changed, offset = 0, 0, 0
    with path.open("rb" if dry_run else "r+b") as file:
        for line in iter(file.readline, b""):
            searched += 1
            masked = masker.mask(line)
            if masked is not line:
                changed += 1
                if not dry_run:
                    file.seek(offset)
                    file.write(masked)
            offset += len(line)
            file.seek(offset)
    return RedactionResult(str(path), searched, changed)
