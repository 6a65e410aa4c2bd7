"""Problems of an installation in words: what is wrong, and what to do.

`find_problems` finds all but those that `Health` states itself.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection
from django.template.defaultfilters import filesizeformat, pluralize
from django.utils import timezone

from toolbench.installation import build_command
from toolbench.lab.operations.storage_space import StorageSpace
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.search_text import GATEWAY_TRACES, TRIALS, TextSource, get_text_lag
from toolbench.lab.worker.health import Health, ProcessStatus

SETTLE_SECONDS = 60  # a sweep runs every 10 s by default, so what is not repaired by then is a problem
MAX_WAIT_SECONDS = 120  # wait of a provider's next trial while none of its trials is running
MAX_CLOCK_SECONDS = 2.0  # difference of a clock from the database's
MAX_TEXT_LAG_SECONDS = 300
MIN_FREE_SHARE = 0.05
MIN_FREE_BYTES = 1_000_000_000
MIN_DAYS_LEFT = 7
REPLACED_SECONDS = 3_600  # a replaced process is reported for so long after its last heartbeat
_SELECT_STUCK_WORK = load_statement("operations/stuck_work")


@dataclass(frozen=True, slots=True)
class HealthProblem:
    """One problem.

    Attributes:
        code: name for programs, such as in the metric `toolbench_problems`.
        title: what is wrong, in a few words.
        sentence: the figures, and what follows from the problem.
        advice: what to do.
    """

    code: str
    title: str
    sentence: str
    advice: str


@dataclass(frozen=True, slots=True)
class WaitingProvider:
    """A provider whose next trial waits although none of its trials is running and no rate control delays its requests.

    Attributes:
        reason: why the provider is paused; "" if it is not.
    """

    name: str
    waiting_seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class StuckWork:
    """Work that a sweep or a worker should have done, and the difference from the database's clock.

    Attributes:
        stale_cells: number of cells that are not recomputed although their run ended more than SETTLE_SECONDS ago.
        expired_trials: number of running trials whose lease ended more than SETTLE_SECONDS ago.
        waiting: providers whose next trial has waited for more than MAX_WAIT_SECONDS.
        clock_offset_seconds: seconds by which the clock of this process is ahead of the database's.
    """

    stale_cells: int
    expired_trials: int
    waiting: tuple[WaitingProvider, ...]
    clock_offset_seconds: float


def find_problems(health: Health, space: StorageSpace) -> tuple[HealthProblem, ...]:
    """Return every problem that `health` does not state itself, the most urgent kind first, with three queries.

    `health` states a missing worker, cells that cannot be computed and failed background jobs; the page shows each of
    them in a section of its own.
    """
    work = read_stuck_work()
    return (
        *_iter_disk_problems(space),
        *_iter_process_problems(health.processes),
        *_iter_queue_problems(work, has_worker=health.has_worker),
        *_iter_repair_problems(work),
        *_iter_clock_problems(health.processes, work),
        *_iter_search_problems("search", TRIALS, get_text_lag(TRIALS)),
        *_iter_search_problems("gateway_search", GATEWAY_TRACES, get_text_lag(GATEWAY_TRACES)),
    )


def read_stuck_work() -> StuckWork:
    """Read the work that a sweep or a worker should have done, and compare the clocks, with one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            _SELECT_STUCK_WORK,
            {"settle_seconds": SETTLE_SECONDS, "wait_seconds": MAX_WAIT_SECONDS},
        )
        stale_cells, expired_trials, waiting, database_time = cursor.fetchone()
    return StuckWork(
        stale_cells=stale_cells,
        expired_trials=expired_trials,
        waiting=tuple(WaitingProvider(**provider) for provider in json.loads(waiting)),
        clock_offset_seconds=(timezone.now() - database_time).total_seconds(),
    )


def _iter_disk_problems(space: StorageSpace) -> Iterator[HealthProblem]:
    disk = space.disk
    if disk is None:
        return
    days = space.days_left
    is_low = disk.free_share < MIN_FREE_SHARE or disk.free_bytes < MIN_FREE_BYTES
    if not is_low and (days is None or days >= MIN_DAYS_LEFT):
        return
    rate = "" if days is None else f" At the rate of the last week it is full in {days:.1f} days."
    yield HealthProblem(
        "disk",
        "The disk is nearly full",
        f"{filesizeformat(disk.free_bytes)} of {filesizeformat(disk.total_bytes)} are free in {disk.folder}.{rate} "
        "PostgreSQL stops when nothing is left.",
        "Make room, or let bodies of old trials be removed: see Retention.",
    )


def _iter_process_problems(processes: Sequence[ProcessStatus]) -> Iterator[HealthProblem]:
    """Yield problems of processes.

    A process without a recent heartbeat is reported while no other of its kind is alive on its host. If another one is,
    the process was replaced and is reported until REPLACED_SECONDS after its last heartbeat.
    """
    alive = {(process.kind, process.host) for process in processes if process.is_alive}
    silent = [process for process in processes if not process.is_alive]
    gone = [process for process in silent if (process.kind, process.host) not in alive]
    if gone:
        names = _list_names(gone)
        yield HealthProblem(
            "silent",
            f"{len(gone)} process{pluralize(len(gone), 'es')} stopped sending heartbeats",
            f"Silent: {names}. Trials that they ran go back into the queue when their lease ends.",
            f"Read the log of the process, and start it again: `{build_command('up')}` does so by itself.",
        )
    replaced = [process for process in silent if process not in gone and process.silent_seconds < REPLACED_SECONDS]
    if replaced:
        yield HealthProblem(
            "ended",
            f"{len(replaced)} process{pluralize(len(replaced), 'es')} ended unexpectedly in the last hour",
            f"Ended: {_list_names(replaced)}. Others of the same kind on the same host are alive.",
            "If it happens again, read the end of the process's log: memory may be short.",
        )
    if processes and not any(process.kind == "scheduler" and process.is_alive for process in processes):
        yield HealthProblem(
            "scheduler",
            "No scheduler is running",
            "Lost trials are requeued late, and schedules, alerts and retention wait.",
            f"Start it: `{build_command('up')}` does so, or `{build_command('scheduler')}`.",
        )


def _list_names(processes: Sequence[ProcessStatus]) -> str:
    shown = [f"{process.name} ({_format_seconds(process.silent_seconds)} ago)" for process in processes[:5]]
    more = len(processes) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def _iter_queue_problems(work: StuckWork, *, has_worker: bool) -> Iterator[HealthProblem]:
    if not has_worker:
        return
    for provider in work.waiting:
        reason = f" {provider.reason}" if provider.reason else ""
        yield HealthProblem(
            "queue",
            f"Trials of {provider.name} wait",
            f"Its next trial has waited {_format_seconds(provider.waiting_seconds)} and none is running.{reason}",
            "Look at the provider's page, and at the log of the worker.",
        )


def _iter_repair_problems(work: StuckWork) -> Iterator[HealthProblem]:
    if work.expired_trials:
        yield HealthProblem(
            "sessions",
            f"{work.expired_trials} trial{pluralize(work.expired_trials)} of ended worker sessions "
            f"{pluralize(work.expired_trials, 'was,were')} not requeued",
            f"Their leases ended more than {SETTLE_SECONDS} s ago, and no sweep has requeued them.",
            f"Start a scheduler or a worker; `{build_command('sweep')}` requeues them at once.",
        )
    if work.stale_cells:
        yield HealthProblem(
            "stale",
            f"{work.stale_cells} cell{pluralize(work.stale_cells)} of ended runs "
            f"{pluralize(work.stale_cells, 'was,were')} not recomputed",
            "Rates and intervals of these runs miss the last trials.",
            f"Start a scheduler or a worker; `{build_command('sweep')}` recomputes them at once.",
        )


def _iter_clock_problems(processes: Sequence[ProcessStatus], work: StuckWork) -> Iterator[HealthProblem]:
    offsets = {process.host: process.clock_offset_ms / 1000 for process in processes if process.is_alive}
    wrong_offsets = {host: offset for host, offset in offsets.items() if abs(offset) > MAX_CLOCK_SECONDS}
    if abs(work.clock_offset_seconds) > MAX_CLOCK_SECONDS:
        wrong_offsets["this web server"] = work.clock_offset_seconds
    if not wrong_offsets:
        return
    differences = ", ".join(
        f"{host} is {_format_seconds(abs(offset))} {'ahead' if offset > 0 else 'behind'}"
        for host, offset in sorted(wrong_offsets.items())
    )
    yield HealthProblem(
        "clock",
        "Clocks differ from the database's",
        f"By the database's clock, {differences}. Leases and durations are right, since they use the database's time "
        "and a steady clock; dates that these hosts write are wrong.",
        "Synchronise the clocks, for example with NTP.",
    )


def _iter_search_problems(code: str, source: TextSource, lag_seconds: float) -> Iterator[HealthProblem]:
    if lag_seconds > MAX_TEXT_LAG_SECONDS:
        yield HealthProblem(
            code,
            f"The search does not find the newest {source.name}s",
            f"A {source.name} has waited {_format_seconds(lag_seconds)} for its search text.",
            "Start a scheduler; if it runs, look at the failed jobs.",
        )


def _format_seconds(seconds: float) -> str:
    """Return a duration in the largest unit of which it has at least two: "90 s", "2 min", "36 h" or "3 d"."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
