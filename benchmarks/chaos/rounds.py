"""Rounds of faults: launch runs, inject faults, wait until the runs end, check the invariants."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any

import psycopg

from benchmarks.chaos.fault_injector import FaultInjector
from benchmarks.chaos.lab_client import LabClient
from benchmarks.chaos.provider import CountingProvider
from benchmarks.chaos.schedule import Round
from benchmarks.chaos.stack import Stack, StackTimeoutError, wait_until

STUCK_SECONDS = 60.0  # after the last fault is undone; a run that has not ended by then is stuck
MAX_CHECKED_RUNS = 12  # the latest runs, some of earlier rounds: a frozen process may write late
_POLL_SECONDS = 0.1
_MAX_TRIALS = 20  # of a cell with sequential stopping

BUSY_QUERY = """
SELECT count(*) FROM lab_run AS run WHERE id = ANY(%s) AND (
    state NOT IN ('finished', 'cancelled', 'paused')
    OR EXISTS (SELECT 1 FROM lab_trial WHERE run_id = run.id AND state = 'running')
    OR EXISTS (SELECT 1 FROM lab_cell WHERE run_id = run.id AND stale))
"""


@dataclass(slots=True)
class LaunchedRun:
    """Run of a round.

    Attributes:
        kind: capped, plain, poisoned, until or simulated.
        name: its part of the counting provider's address; "" for a run of a simulated model.
        poisoned: whether it gets poisoned answers.
    """

    run_id: int
    kind: str
    name: str = ""
    poisoned: bool = False


@dataclass(slots=True)
class ChaosRunner:
    """Runner of rounds on one stack. A round also checks runs of earlier rounds.

    Attributes:
        runs: all runs so far, in the order of their launch.
    """

    stack: Stack
    lab: LabClient
    provider: CountingProvider
    runs: list[LaunchedRun] = field(default_factory=list)
    _reported: set[tuple[str, int]] = field(default_factory=set)

    def play(self, planned: Round) -> dict[str, Any]:
        """Play one round.

        Returns:
            Its record, as JSON; `parts` are the seconds of the launch, of the faults, and until all runs had ended.
        """
        began = time.monotonic()
        injector = FaultInjector(self.stack, Random(f"{planned.seed} {planned.number} pids"))
        first, moments = len(self.runs), [began]
        with injector.inject([fault for fault in planned.faults if fault.at < 0]):
            self._launch(planned)
            moments.append(time.monotonic())
        with injector.inject([fault for fault in planned.faults if fault.at >= 0]):
            pass
        moments.append(time.monotonic())
        try:
            self._wait_for_ends(self.runs[first:])
        except StackTimeoutError as error:
            injector.missing.append(str(error))
        moments.append(time.monotonic())
        checked = self.lab.ask("check", runs=[self._build_watched_run(run) for run in self.runs[-MAX_CHECKED_RUNS:]])
        missing = [{"kind": "stuck", "run_id": None, "text": text} for text in injector.missing]
        return {
            **planned.to_json(),
            "hit": injector.hit,
            "runs": [self._describe_run(run, checked["ends"][str(run.run_id)]) for run in self.runs[first:]],
            "cells": checked["cells"],
            "violations": missing + self._list_new(checked["violations"]),
            "seconds": round(time.monotonic() - began, 2),
            "parts": [round(after - before, 2) for before, after in pairwise(moments)],
            "disk_mb": round(self.stack.disk.used_mb()) if self.stack.disk else None,
        }

    def _list_new(self, violations: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the violations that no earlier round has reported, since a run is checked in several rounds."""
        fresh = [found for found in violations if (found["kind"], found["run_id"]) not in self._reported]
        self._reported |= {(found["kind"], found["run_id"]) for found in fresh}
        return fresh

    def _launch(self, planned: Round) -> None:
        def launch_counted(kind: str, *, cap: int | None = None, poison: str = "") -> None:
            name = f"{kind}-{planned.number}-{len(self.runs)}"
            base_url = self.provider.build_base_url(name, poison=poison)
            options = {
                "trials": planned.trials,
                "cap": cap,
                "poisoned": bool(poison),
                "stream": poison.startswith("stream"),
            }
            run_id = self.lab.ask("launch_counted", base_url=base_url, **options)
            self.runs.append(LaunchedRun(run_id, kind, name, bool(poison)))

        launch_counted("capped", cap=planned.cap)
        launch_counted("plain")
        if planned.poison:
            launch_counted("poisoned", poison=planned.poison)
        persona, trials = ("reliable-90", _MAX_TRIALS) if planned.until else ("slow", planned.trials // 2)
        run_id = self.lab.ask("launch_simulated", persona=persona, trials=trials, until=planned.until)
        self.runs.append(LaunchedRun(run_id, "until" if planned.until else "simulated"))

    def _wait_for_ends(self, runs: Sequence[LaunchedRun]) -> None:
        ids = [run.run_id for run in runs]
        wait_until(lambda: not self._is_busy(ids), "the runs' ends", seconds=STUCK_SECONDS)
        wait_until(self.stack.is_page_served, "a page", seconds=STUCK_SECONDS)

    def _is_busy(self, ids: list[int]) -> bool:
        time.sleep(_POLL_SECONDS)
        try:
            with self.stack.connect() as connection:
                row = connection.execute(BUSY_QUERY, [ids]).fetchone()
        except psycopg.Error:
            return True
        return row is None or row[0] > 0

    def _build_watched_run(self, run: LaunchedRun) -> dict[str, Any]:
        sent = self.provider.count_sent(run.name) if run.name else None
        return {"run_id": run.run_id, "sent": sent, "poisoned": run.poisoned}

    def _describe_run(self, run: LaunchedRun, ends: dict[str, Any]) -> dict[str, Any]:
        return {"kind": run.kind, **self._build_watched_run(run), **ends}
