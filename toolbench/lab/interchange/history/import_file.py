"""Import of histories, and counts of their turns. A history is a file of turns that another program recorded.

A history is imported completely or not at all. Its turns are never counted together with trials.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import IO, Any

from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import Count, Min

from toolbench.evals.statistics.clusters import ClusterSums
from toolbench.evals.statistics.intervals import ScenarioSample
from toolbench.evals.statistics.pooling import pool_samples
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.interchange.history.lines import HistoryImportError, HistoryLine, parse_lines
from toolbench.lab.metrics.rate import Rate, build_pooled_rate, build_rate
from toolbench.lab.models import History, HistoryTurn
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.step_facts import to_column_text
from toolbench.providers.masking.secrets import Masker

MAX_HISTORY_BYTES = 256 << 20
MAX_ERRORS_SHOWN = 20
_TURNS_PER_INSERT = 1000
_MAX_TEXT_CHARS = 200  # of an error or a snippet
_CLUSTER_SUM_FIELDS = ("m", "k", "n", "kk", "kn", "nn")  # the fields of ClusterSums, in order


@dataclass(frozen=True, slots=True)
class PathRow:
    """Counts of the turns with the same path, or with the same model, prompt version and path.

    Attributes:
        model: "" if only the path is the same.
        prompt_version: "" if only the path is the same.
        path: method that the turns used.
        turns: number of turns.
        conversations: number of distinct conversations; turns without a conversation are not counted here.
        parse_errors: share of the turns with an attempted call that have a parse error.
        succeeded: share of the turns with a known result that succeeded.
        retries: number of retries in all turns.
        probes_failed: number of turns whose probe failed.
    """

    model: str
    prompt_version: str
    path: str
    turns: int
    conversations: int
    parse_errors: Rate
    succeeded: Rate
    retries: int
    probes_failed: int


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """Parse error of turns with the same path, and the first line that has it.

    Attributes:
        mode: the other program's name for its way of parsing the call.
        count: number of turns with the error.
        line: number of the first line with the error, from 1.
        snippet: masked text of that line's call, at most 200 characters.
    """

    path: str
    mode: str
    error: str
    count: int
    line: int
    snippet: str


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Data of the page of a history.

    Attributes:
        history: the imported file.
        by_path: counts by path.
        by_model: counts by model, prompt version and path.
        errors: at most 20 parse errors, the most frequent first.
    """

    history: History
    by_path: tuple[PathRow, ...]
    by_model: tuple[PathRow, ...]
    errors: tuple[ErrorRow, ...]


def import_history(file: IO[bytes], name: str) -> History:
    """Import a history and mask known secrets in it. After an error nothing is stored.

    Args:
        file: read from its current position to its end.
        name: name of the file, stored with at most 200 characters.

    Raises:
        HistoryImportError: the file exceeds 256 MiB or MAX_LINES lines, has no turn, was imported before, or has a line
            that cannot be read or stored.
    """
    content = file.read(MAX_HISTORY_BYTES + 1)
    if len(content) > MAX_HISTORY_BYTES:
        raise HistoryImportError(
            f"The history has more than {MAX_HISTORY_BYTES:,} bytes. Nothing was imported. Split the file."
        )
    sha256 = hashlib.sha256(content).hexdigest()
    _check_not_imported(sha256)
    turns = parse_lines(content.splitlines())
    masker = load_known_secrets().masker
    try:
        with transaction.atomic():
            history = History.objects.create(
                name=to_column_text(masker.mask_text(name), 200), sha256=sha256, turn_count=len(turns)
            )
            rows = (HistoryTurn(history=history, line=line, **_build_columns(turn, masker)) for line, turn in turns)
            HistoryTurn.objects.bulk_create(rows, batch_size=_TURNS_PER_INSERT)
    except IntegrityError:
        _check_not_imported(sha256)  # another process may have imported the file since the first check
        raise
    except (DataError, ValueError) as error:
        raise HistoryImportError(f"A turn cannot be stored: {error}. Nothing was imported.") from error
    return history


def _check_not_imported(sha256: str) -> None:
    """Check that no file with this hash was imported.

    Raises:
        HistoryImportError: the same file was imported already.
    """
    if same_history := History.objects.filter(sha256=sha256).first():
        raise HistoryImportError(
            f"The same file was imported already, as history {same_history.pk}. Nothing was imported."
        )


def get_histories() -> tuple[History, ...]:
    """Return the 100 newest histories, the newest first."""
    return tuple(History.objects.all()[:100])


def get_history_page(history_id: int) -> HistoryPage:
    """Return the counts and the parse errors of a history, with at most five queries.

    Raises:
        History.DoesNotExist: there is no such history.
    """
    history = History.objects.get(pk=history_id)
    paths = tuple(_build_path_row(row) for row in _count_turns(history, "path"))
    rows = tuple(_build_path_row(row) for row in _count_turns(history, "model", "prompt_version", "path"))
    return HistoryPage(history, paths, rows, _list_errors(history))


def _build_columns(turn: HistoryLine, masker: Masker) -> Mapping[str, Any]:
    probe, failure = turn.probe, turn.parse_error
    columns = {
        **turn.model_dump(exclude={"strategy", "probe", "parse_error"}),
        "path": turn.strategy,
        "probe_ok": probe.ok if probe else None,
        "probe_error": _mask_text(probe.error, masker) if probe else "",
        "parse_mode": failure.mode if failure else "",
        "parse_error": _mask_text(failure.error, masker) if failure else "",
        "snippet": _mask_text(failure.snippet, masker) if failure else "",
    }
    return masker.mask_value(columns)


def _mask_text(text: str | None, masker: Masker) -> str:
    """Mask a text, then truncate it to 200 characters: a truncated secret would not be recognised. None becomes ""."""
    return to_column_text(masker.mask_text(text or ""), _MAX_TEXT_CHARS)


def _count_turns(history: History, *group_columns: str) -> Iterator[Mapping[str, Any]]:
    """Yield the rows of `count_turns.sql`, one for each combination of values in the columns, with one query."""
    with connection.cursor() as cursor:
        cursor.execute(load_statement("interchange/history/count_turns", key=", ".join(group_columns)), [history.pk])
        result_columns = [column.name for column in cursor.description or ()]
        yield from (dict(zip(result_columns, row, strict=True)) for row in cursor.fetchall())


def _build_path_row(row: Mapping[str, Any]) -> PathRow:
    return PathRow(
        model=row.get("model", ""),
        prompt_version=row.get("prompt_version", ""),
        path=row["path"],
        turns=row["turns"],
        conversations=row["conversations"],
        parse_errors=_build_rate([row[f"failed_{name}"] for name in _CLUSTER_SUM_FIELDS]),
        succeeded=_build_rate([row[f"succeeded_{name}"] for name in _CLUSTER_SUM_FIELDS]),
        retries=row["retries"],
        probes_failed=row["probes_failed"],
    )


def _build_rate(sums: Sequence[Any]) -> Rate:
    """Return a rate whose interval uses the effective sample size, since the turns of a conversation are correlated.

    Args:
        sums: values of `_CLUSTER_SUM_FIELDS`, in order.
    """
    cluster_sums = ClusterSums(*(int(count or 0) for count in sums))
    k, n = int(cluster_sums.k), int(cluster_sums.n)
    if cluster_sums.design_effect == 1:
        return build_rate(k, n)
    return build_pooled_rate(
        k,
        n,
        replace(pool_samples([ScenarioSample(*cluster_sums.compute_effective_counts(), clustered=True)]), share=k / n),
    )


def _list_errors(history: History) -> tuple[ErrorRow, ...]:
    """Return at most 20 parse errors, the most frequent first."""
    failed_turns = history.turns.exclude(parse_error="").order_by()
    errors = failed_turns.values("path", "parse_mode", "parse_error").annotate(count=Count("pk"), first=Min("line"))
    rows = list(errors.order_by("-count", "first")[:MAX_ERRORS_SHOWN])
    snippet_by_line = dict(failed_turns.filter(line__in=[row["first"] for row in rows]).values_list("line", "snippet"))
    return tuple(
        ErrorRow(
            path=row["path"],
            mode=row["parse_mode"],
            error=row["parse_error"],
            count=row["count"],
            line=row["first"],
            snippet=snippet_by_line[row["first"]],
        )
        for row in rows
    )
