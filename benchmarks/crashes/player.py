"""Player of schedules: a process crashes, others finish its work, and the invariants are checked."""

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

import psycopg
from django.db import DatabaseError, connection, connections, transaction
from django.test.utils import override_settings

from benchmarks.chaos.invariants import Violation, WatchedRun, find_violations, install_end_trigger
from benchmarks.chaos.provider import CountingProvider
from benchmarks.crashes.crash_points import (
    CrashPoint,
    SimulatedProcess,
    install_hooks,
    replace_attribute,
    run_outside_processes,
)
from benchmarks.crashes.invariants import find_other_violations, find_trace_violations
from benchmarks.crashes.kinds import KINDS, Kind, ScheduleContext
from benchmarks.crashes.prepared_rows import PreparedRows, empty_tables
from toolbench.celery import app
from toolbench.lab.endpoints.probe_job import run_probe
from toolbench.lab.maintenance import sweep
from toolbench.lab.models import Provider, Run
from toolbench.lab.planning.auto_method import decide_waiting_methods
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.worker.queue import PROBE_TASK
from toolbench.providers.scripted_server import ScriptedReply

MAX_ROUNDS = 8  # of sweeps and sessions after the crash; work that is unfinished after them is stuck
_SETTINGS = {"HEARTBEAT_SECONDS": 0.5, "SWEEP_SECONDS": 10.0, "LEASE_SECONDS": 60.0, "SESSION_SECONDS": 90.0}
LEASE_SECONDS = 3.0  # virtual time, several times the interval between renewals
TIMEOUT_SECONDS = 120.0  # for the crashing process, on a busy machine

_END_LEASES = (
    "UPDATE lab_trial SET lease_until = clock_timestamp() - interval '1 second' WHERE state = 'running'",
    "UPDATE lab_probe SET lease_until = clock_timestamp() - interval '1 second' WHERE state = 'running'",
)
_HELD_LEASES = """
SELECT lease, lease_until FROM lab_trial WHERE state = 'running'
UNION ALL SELECT lease, lease_until FROM lab_probe WHERE state = 'running'
"""
_END_LEASE = tuple(f"{statement} AND lease = %s" for statement in _END_LEASES)
_OPEN_TRANSACTIONS = "SELECT count(*) FROM pg_stat_activity WHERE pid = ANY(%s) AND xact_start IS NOT NULL"
# Another person has meanwhile done what the frozen process was about to do, so its action is refused.
_ERRORS_OF_FROZEN_PROCESS = (DatabaseError, RunActionError)
_UNFINISHED = """
SELECT EXISTS (SELECT 1 FROM lab_run WHERE state NOT IN ('finished', 'cancelled', 'paused'))
    OR EXISTS (SELECT 1 FROM lab_trial WHERE state = 'running')
    OR EXISTS (SELECT 1 FROM lab_cell WHERE stale)
    OR EXISTS (SELECT 1 FROM lab_probe WHERE state <> 'done')
"""


class LeaseClock:
    """Ends leases that were not renewed for LEASE_SECONDS of virtual time. It has a connection of its own."""

    def __init__(self) -> None:
        self._session = psycopg.connect(**connection.get_connection_params(), autocommit=True)
        self._session.execute("SET synchronous_commit = off")  # for these statements alone
        self._read_at = 0.0
        self._known: set[tuple[object, ...]] = set()

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def pass_time(self, now: float) -> None:
        """Set the virtual time of a process, and end leases. Call it in the thread of its event loop."""
        if now < self._read_at:  # the time is that of another loop
            self._read_at, self._known = 0.0, set()
        if now - self._read_at >= LEASE_SECONDS:
            with run_outside_processes():
                held = set(self._session.execute(_HELD_LEASES).fetchall())
                for lease, _ in held & self._known:
                    for statement in _END_LEASE:
                        self._session.execute(statement, [lease])
            self._read_at, self._known = now, held


@dataclass(frozen=True, slots=True)
class Played:
    """Result of a schedule.

    Attributes:
        point: where the process crashed; None for a schedule without a crash.
        events: descriptions of the statements, commits and requests of the process, in order.
        was_hit: whether the fault happened.
    """

    kind: str
    point: CrashPoint | None
    events: tuple[str, ...]
    was_hit: bool
    violations: tuple[Violation, ...]
    seconds: float


@dataclass(slots=True)
class _CrashingProcess:
    """The process that crashes, and its thread."""

    process: SimulatedProcess
    work: Callable[[], object]
    error: Exception | None = None
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.process.run(self.work)
        except Exception as error:
            self.error = error
        finally:
            connections.close_all()

    def wait(self) -> bool:
        """Wait until the process has ended or is frozen; return False if it takes more than TIMEOUT_SECONDS."""
        return self.process.stopped.wait(TIMEOUT_SECONDS)


class Player:
    """Plays schedules one after another, each on the rows of its kind and no others."""

    def __init__(self) -> None:
        self._provider = CountingProvider(delay_seconds=0, intervene=self._intervene)
        self._messages: list[tuple[str, int]] = []
        self._prepared: dict[str, tuple[ScheduleContext, PreparedRows]] = {}
        self._context: ScheduleContext | None = None
        self._played = 0
        self._leases = LeaseClock()

    @contextmanager
    def running(self) -> Iterator["Player"]:
        """Serve the scripted provider and catch messages to workers during the block."""
        self._provider.start()
        install_end_trigger()
        try:
            catching = replace_attribute(app, "send_task", self._catch_message)
            with catching, install_hooks(), override_settings(**_SETTINGS):
                yield self
        finally:
            for _, rows in self._prepared.values():
                rows.drop()
            self._leases.close()
            self._provider.stop()

    def play(self, name: str, point: CrashPoint | None = None) -> Played:
        """Play a schedule; without a crash point, the process does its work to the end."""
        began = time.perf_counter()
        kind = KINDS[name]
        context = self._write_rows(name)
        self._messages.clear()  # the process works on this message; others are lost
        crashing = _CrashingProcess(SimulatedProcess(point, on_time=self._leases.pass_time), lambda: kind.work(context))
        violations = self._let_crash(crashing, kind, context)
        process = crashing.process
        violations += self._find_violations(kind)
        violations += find_trace_violations(0 if process.is_dead else kind.stored_traces)
        seconds = time.perf_counter() - began
        return Played(name, point, tuple(process.events), process.was_hit, tuple(violations), seconds)

    def _write_rows(self, kind: str) -> ScheduleContext:
        """Write the rows of the kind. Its provider gets a new address, at which no request has been counted."""
        self._played += 1
        address = self._provider.build_base_url(str(self._played))
        if kind not in self._prepared:
            self._prepared[kind] = self._prepare(kind, address)
        context, rows = self._prepared[kind]
        self._context = context
        with transaction.atomic():
            rows.write()
            Provider.objects.filter(name=kind).update(base_url=address)
        return context

    def _prepare(self, kind: str, address: str) -> tuple[ScheduleContext, PreparedRows]:
        with transaction.atomic():
            empty_tables()
        context = ScheduleContext(kind, address)
        KINDS[kind].prepare(context)
        rows = PreparedRows(f"crashes of {kind}")
        rows.keep()
        return context, rows

    def _let_crash(self, crashing: _CrashingProcess, kind: Kind, context: ScheduleContext) -> list[Violation]:
        crashing.thread.start()
        in_time = crashing.wait()
        expected_errors: tuple[type[Exception], ...] = (DatabaseError,)
        if crashing.process.is_frozen:
            expected_errors = _ERRORS_OF_FROZEN_PROCESS
            try:
                self._finish_work(crashing.process, kind, context)
            finally:
                crashing.process.thaw()
            in_time = crashing.wait()
        if not in_time:
            crashing.process.kill()
        crashing.thread.join(TIMEOUT_SECONDS)
        crashing.process.connections.close()
        self._finish_work(crashing.process, kind, context)
        violations = [] if in_time else [Violation("stuck", 0, "the process did not end")]
        if crashing.error is not None and not isinstance(crashing.error, expected_errors):
            text = "".join(traceback.format_exception(crashing.error, limit=-3))
            violations.append(Violation("exception", 0, text))
        return violations

    def _finish_work(self, process: SimulatedProcess, kind: Kind, context: ScheduleContext) -> None:
        """Let other processes and people finish the work. Only messages of a sweep reach workers."""
        _wait_for_rollback(process)
        for _ in range(MAX_ROUNDS):
            _end_leases()
            _act(kind, context)
            self._messages.clear()
            sweep()
            for task, identifier in tuple(dict.fromkeys(self._messages)):
                SimulatedProcess(answer_seconds=0).run(partial(_work_on, task, identifier, context))
            _act(kind, context)
            if not _is_unfinished():
                return

    def _find_violations(self, kind: Kind) -> list[Violation]:
        sent = self._provider.count_sent(str(self._played))
        run_ids = list(Run.objects.values_list("pk", flat=True))
        found = find_violations([WatchedRun(run_id, sent) for run_id in run_ids])
        if kind.ends_twice:
            found = [violation for violation in found if "ended" not in violation.text]
        return found + find_other_violations(sent)

    def _intervene(self, name: str, count: int) -> ScriptedReply | None:
        return self._context.intervene(count) if self._context and name == str(self._played) else None

    def _catch_message(self, task: str, arguments: list[int], **options: object) -> None:
        self._messages += [(task, argument) for argument in arguments]


def _work_on(task: str, identifier: int, context: ScheduleContext) -> None:
    if task == PROBE_TASK:
        run_probe(identifier, on_finished=decide_waiting_methods)
    else:
        context.work()


def _act(kind: Kind, context: ScheduleContext) -> None:
    """Let people act. A refused action is ignored: if its work is not done, the invariants show it."""
    with suppress(RunActionError):
        kind.act(context)


def _end_leases() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL synchronous_commit = off; {'; '.join(_END_LEASES)}")


def _wait_for_rollback(process: SimulatedProcess) -> None:
    """Wait until the database has ended the transactions of cut connections."""
    until = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(_OPEN_TRANSACTIONS, [list(process.connections.backends)])
            if not cursor.fetchone()[0]:
                return
        time.sleep(0.002)


def _is_unfinished() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(_UNFINISHED)
        return bool(cursor.fetchone()[0])
