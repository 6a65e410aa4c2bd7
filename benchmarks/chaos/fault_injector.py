"""Injection of faults at set times: kill or freeze processes, fill the disk, and undo it."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from random import Random

import psycopg

from benchmarks.chaos.schedule import FILL, KILL, Fault
from benchmarks.chaos.stack import Stack, StackTimeoutError, wait_until

_TARGET_TIMEOUT_SECONDS = 30.0  # until a process runs again that an earlier fault ended
_LEAD_SECONDS = 0.2  # from a fault before the launch to the launch


class FaultInjector:
    """Injects the faults of one round.

    Attributes:
        hit: descriptions of the faults that happened.
        missing: sentences about faults that found no process in time.
    """

    def __init__(self, stack: Stack, random: Random) -> None:
        self._stack = stack
        self._random = random
        self._frozen: dict[Fault, list[int]] = {}
        self.hit: list[str] = []
        self.missing: list[str] = []

    @contextmanager
    def inject(self, faults: Sequence[Fault]) -> Iterator[None]:
        """Inject faults in a thread while the block runs, and wait until the last of them is undone.

        Times count from the beginning of the block. If a fault begins before the launch, the block begins 0.2 s later.
        """
        thread = threading.Thread(target=self._play, args=(faults,))
        thread.start()
        try:
            if any(fault.at < 0 for fault in faults):
                time.sleep(_LEAD_SECONDS)
            yield
        finally:
            thread.join()

    def _play(self, faults: Sequence[Fault]) -> None:
        events = [(fault.at, False, fault) for fault in faults]
        events += [(fault.at + fault.seconds, True, fault) for fault in faults if fault.seconds]
        began = time.monotonic() - min((at for at, _, _ in events), default=0.0)
        if all(fault.at >= 0 for fault in faults):
            began = time.monotonic()
        for at, undoes, fault in sorted(events, key=lambda event: event[:2]):
            time.sleep(max(0.0, at - (time.monotonic() - began)))
            if undoes:
                self._undo(fault)
            else:
                self._begin(fault)

    def _begin(self, fault: Fault) -> None:
        if fault.kind == FILL:
            self._fill(fault)
            return
        pids: list[int] = []

        def find() -> bool:
            pids[:] = self._stack.find_pids(fault.target, self._random)
            return bool(pids)

        try:
            wait_until(find, fault.target, seconds=_TARGET_TIMEOUT_SECONDS)
        except StackTimeoutError as error:
            self.missing.append(str(error))
            return
        _send_signal(pids, signal.SIGKILL if fault.kind == KILL else signal.SIGSTOP)
        self._frozen[fault] = pids
        self.hit.append(str(fault))

    def _undo(self, fault: Fault) -> None:
        if fault.kind == FILL and self._stack.disk:
            self._stack.disk.make_room()
        _send_signal(self._frozen.pop(fault, []), signal.SIGCONT)

    def _fill(self, fault: Fault) -> None:
        assert self._stack.disk
        self._stack.disk.fill()
        self.hit.append(str(fault))
        if fault.target == "wal":  # otherwise the rest of a segment of 16 MB may suffice for the whole round
            with suppress(psycopg.Error), self._stack.connect() as connection:
                connection.execute("SELECT pg_switch_wal()")


def _send_signal(pids: Sequence[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
