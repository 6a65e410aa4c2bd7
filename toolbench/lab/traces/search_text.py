"""Search texts of trials and gateway traces, which the sweep writes in batches.

Storing a row only marks its search text as stale. Until the sweep has written the text, a search does not find the
row. `get_text_lag` returns how long the next row has waited.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable
from django.db.models.functions import Greatest
from django.utils import timezone

from toolbench.lab.models import GatewayTrace, Trial
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.gateway_text import build_trace_texts
from toolbench.lab.traces.trial_text import build_trial_texts

TEXTS_PER_BATCH = 200
MAX_TEXTS_PER_SWEEP = 4_000  # for each source


@dataclass(slots=True)
class CpuCounter:
    """Counter of the CPU time that threads of this process spend on one kind of work. Thread-safe.

    Attributes:
        seconds: sum of the CPU times of the `measure` blocks that have ended.
    """

    seconds: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Add the CPU time that this thread spends in the block."""
        started_at = time.thread_time()
        try:
            yield
        finally:
            with self._lock:
                self.seconds += time.thread_time() - started_at


TEXT_CPU = CpuCounter()  # for writing search texts


@dataclass(frozen=True, slots=True)
class TextSource:
    """Kind of rows that have search texts.

    Attributes:
        name: what one row is called in sentences, such as `trial`.
        stale: the rows whose search text has to be written.
        time_column: name of the column that orders the stale rows; the oldest is written first.
        waits_since: time from which a row waits for its text.
        build_texts: returns the texts of rows by primary key; it is called with the primary keys.
        store: SQL that stores the texts.
    """

    name: str
    stale: QuerySet[Any]
    time_column: str
    waits_since: Combinable
    build_texts: Callable[[Sequence[int]], Mapping[int, str]]
    store: str


TRIALS = TextSource(
    "trial",
    Trial.objects.filter(text_stale=True, state=Trial.State.DONE),
    "finished_at",
    Greatest("finished_at", "queued_at"),  # an imported trial finished before it was stored here
    build_trial_texts,
    load_statement("traces/store_texts", table="lab_trialtext", key="trial_id"),
)
GATEWAY_TRACES = TextSource(
    "gateway trace",
    GatewayTrace.objects.filter(text_stale=True),
    "at",
    F("at"),
    build_trace_texts,
    load_statement("traces/store_texts", table="lab_gatewaytracetext", key="trace_id"),
)


def update_search_texts(
    source: TextSource = TRIALS, limit: int = MAX_TEXTS_PER_SWEEP, max_seconds: float = math.inf
) -> int:
    """Write the stale search texts of a source, the oldest row first.

    Args:
        source: trials or gateway traces.
        limit: number of rows after which no further batch of TEXTS_PER_BATCH is started.
        max_seconds: seconds after which no further batch is started.

    Returns:
        The number of rows whose texts were written.
    """
    written, ends_at = 0, time.monotonic() + max_seconds
    while written < limit:
        batch_size = _update_batch(source)
        written += batch_size
        if batch_size < TEXTS_PER_BATCH or time.monotonic() >= ends_at:
            break
    return written


def write_search_texts(source: TextSource, ids: Sequence[int]) -> None:
    """Write the search texts of these rows. Call it in the transaction that locked the rows."""
    with TEXT_CPU.measure():
        texts = source.build_texts(ids)
        with connection.cursor() as cursor:
            cursor.execute(source.store, [list(texts), list(texts.values())])
        source.stale.model._base_manager.filter(pk__in=ids).update(text_stale=False)


def get_text_lag(source: TextSource = TRIALS) -> float:
    """Return how many seconds the next row has waited for its search text; 0.0 if none waits."""
    since = source.stale.order_by(source.time_column).values_list(source.waits_since, flat=True).first()
    return max(0.0, (timezone.now() - since).total_seconds()) if since else 0.0


def _update_batch(source: TextSource) -> int:
    """Write the search texts of one batch and return its size. Rows that another process has locked are skipped."""
    with transaction.atomic():
        stale = source.stale.order_by(source.time_column, "pk").select_for_update(skip_locked=True, of=("self",))
        ids = list(stale.values_list("pk", flat=True)[:TEXTS_PER_BATCH])
        write_search_texts(source, ids)
    return len(ids)
