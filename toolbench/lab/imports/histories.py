"""Histories of other programs: imported whole or not at all, counted by path, never mixed with what was tried here."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import IO, Any

from django.db import DataError, transaction
from django.db.models import Count, Min, Q, Sum

from toolbench.lab.bundles.redacting import known_secrets
from toolbench.lab.counts.rates import Rate, rate_of
from toolbench.lab.imports.history_lines import HistoryRefused, TurnLine, read_lines
from toolbench.lab.models import History, HistoryTurn
from toolbench.lab.steps.facts import column_text
from toolbench.providers.masking import Masker

MOST_BYTES = 256 << 20
MOST_ERRORS = 20
_ROWS = 1000  # per INSERT
_TEXT = 200  # characters of an error or a snippet that are kept


@dataclass(frozen=True, slots=True)
class PathLine:
    """One model, prompt version and path. `parse_errors` is turns with a parse error of turns that attempted a call;
    `succeeded` of the turns that say whether they did."""

    model: str
    prompt_version: str
    path: str
    turns: int
    parse_errors: Rate
    succeeded: Rate
    retries: int
    probes_failed: int


@dataclass(frozen=True, slots=True)
class ErrorLine:
    path: str
    mode: str
    error: str
    count: int
    line: int
    snippet: str


@dataclass(frozen=True, slots=True)
class HistoryPage:
    history: History
    by_path: tuple[PathLine, ...]
    lines: tuple[PathLine, ...]
    errors: tuple[ErrorLine, ...]


def import_history(file: IO[bytes], name: str) -> History:
    """Raises HistoryRefused; then nothing is kept. The same file is imported once."""
    raw = file.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise HistoryRefused(f"The history has more than {MOST_BYTES:,} bytes: split it. Nothing was imported.")
    sha256 = hashlib.sha256(raw).hexdigest()
    if known := History.objects.filter(sha256=sha256).first():
        raise HistoryRefused(f"The same file was imported already, as history {known.pk}. Nothing was imported.")
    turns = read_lines(raw.splitlines())
    masker = known_secrets().masker
    try:
        with transaction.atomic():
            history = History.objects.create(name=column_text(name, 200), sha256=sha256, turn_count=len(turns))
            rows = (HistoryTurn(history=history, line=line, **_columns(turn, masker)) for line, turn in turns)
            HistoryTurn.objects.bulk_create(rows, batch_size=_ROWS)
    except (DataError, ValueError) as error:
        raise HistoryRefused(f"A turn cannot be stored: {error}. Nothing was imported.") from error
    return history


def get_histories() -> tuple[History, ...]:
    return tuple(History.objects.all()[:100])


def get_history(history_id: int) -> HistoryPage:
    """Four queries. Raises History.DoesNotExist."""
    history = History.objects.get(pk=history_id)
    paths = tuple(_line(row) for row in _counted(history, "path"))
    lines = tuple(_line(row) for row in _counted(history, "model", "prompt_version", "path"))
    return HistoryPage(history, paths, lines, _errors(history))


def _columns(turn: TurnLine, masker: Masker) -> Mapping[str, Any]:
    probe, error = turn.probe, turn.parse_error
    return {
        **turn.model_dump(exclude={"strategy", "probe", "parse_error"}),
        "path": turn.strategy,
        "probe_ok": probe.ok if probe else None,
        "probe_error": _said(probe.error, masker) if probe else "",
        "parse_mode": error.mode if error else "",
        "parse_error": _said(error.error, masker) if error else "",
        "snippet": _said(error.snippet, masker) if error else "",
    }


def _said(text: str | None, masker: Masker) -> str:
    """Masked before it is cut, so that no half of a secret is kept."""
    return column_text(masker.mask_text(text or ""), _TEXT)


def _counted(history: History, *key: str) -> Any:
    counted = history.turns.order_by().values(*key)
    return counted.annotate(
        turns=Count("pk"),
        attempted=Count("pk", filter=Q(called=True)),
        faulty=Count("pk", filter=~Q(parse_error="")),
        told=Count("pk", filter=Q(ok__isnull=False)),
        good=Count("pk", filter=Q(ok=True)),
        retried=Sum("retries"),
        unprobed=Count("pk", filter=Q(probe_ok=False)),
    ).order_by(*key)


def _line(row: Mapping[str, Any]) -> PathLine:
    return PathLine(
        model=row.get("model", ""),
        prompt_version=row.get("prompt_version", ""),
        path=row["path"],
        turns=row["turns"],
        parse_errors=rate_of(row["faulty"], row["attempted"]),
        succeeded=rate_of(row["good"], row["told"]),
        retries=row["retried"],
        probes_failed=row["unprobed"],
    )


def _errors(history: History) -> tuple[ErrorLine, ...]:
    """The most frequent, each with the first line that shows it."""
    faulty = history.turns.exclude(parse_error="").order_by()
    counted = faulty.values("path", "parse_mode", "parse_error").annotate(count=Count("pk"), first=Min("line"))
    rows = list(counted.order_by("-count", "first")[:MOST_ERRORS])
    shown = dict(faulty.filter(line__in=[row["first"] for row in rows]).values_list("line", "snippet"))
    return tuple(
        ErrorLine(r["path"], r["parse_mode"], r["parse_error"], r["count"], r["first"], shown[r["first"]]) for r in rows
    )
