"""Running calls on BFCL's classes in a separate process (environment.py)."""

import atexit
import json
import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.cases import NotInstalledError, is_installed
from toolbench.evals.bfcl.golden_answers import BfclCall
from toolbench.evals.bfcl.multi_turn import environment
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase
from toolbench.evals.bfcl.multi_turn.states import ClassStates, parse_state

START_TIMEOUT_SECONDS = 60.0
ANSWER_TIMEOUT_SECONDS = 5.0
_READ_BYTES = 1 << 16


class CallRunnerError(Exception):
    """The classes did not answer in time, or failed, and their process was ended; the message says which."""


@dataclass(frozen=True, slots=True)
class TurnResults:
    """The results of one turn, as the text that BFCL compares, and the state after it."""

    results: tuple[str, ...]
    failed: tuple[bool, ...]
    state: ClassStates


@dataclass(eq=False, slots=True)
class ClassesProcess:
    """The process of BFCL's classes, started for the first request and again after it was ended.

    Every request has its conversation from the beginning, so that nothing is lost if the process ends. Threads may
    share it: they wait for each other.

    Attributes:
        seconds: The time limit of an answer.
    """

    command: tuple[str, ...] = (sys.executable, "-I", str(Path(environment.__file__)))
    seconds: float = ANSWER_TIMEOUT_SECONDS
    _process: subprocess.Popen[bytes] | None = None
    _unread: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, question: JsonObject) -> JsonObject:
        """Return the answer to a request.

        Raises:
            NotInstalledError: BFCL is not installed.
            CallRunnerError: The process did not answer or failed.
        """
        with self._lock:
            try:
                return self._send(question)
            except (CallRunnerError, OSError, ValueError) as error:
                self._kill()
                raise CallRunnerError(str(error)) from error

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._kill()

    def _send(self, question: JsonObject) -> JsonObject:
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps(question).encode() + b"\n")
        process.stdin.flush()
        answer: JsonObject = json.loads(self._read_line(process, self.seconds))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process, with an environment that has no secret of Toolbench."""
        if not is_installed():
            raise NotInstalledError
        self._process = process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath},
        )
        atexit.register(self.close)
        if self._read_line(process, START_TIMEOUT_SECONDS).decode() != environment.READY_LINE:
            raise CallRunnerError("BFCL's classes did not start.")
        return process

    def _read_line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None
        until = time.monotonic() + seconds
        while b"\n" not in self._unread:
            left = until - time.monotonic()
            if left <= 0 or not select.select([process.stdout], [], [], left)[0]:
                raise CallRunnerError(f"BFCL's classes gave no answer within {seconds:g} s and were ended.")
            piece = os.read(process.stdout.fileno(), _READ_BYTES)
            if not piece:
                raise CallRunnerError("BFCL's classes failed; their process is gone.")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def _kill(self) -> None:
        process, self._process, self._unread = self._process, None, b""
        if process is not None:
            atexit.unregister(self.close)
            process.kill()
            process.communicate()


@cache
def get_classes_process() -> ClassesProcess:
    """Return the only instance in this process."""
    return ClassesProcess()


def run_calls(
    case: MultiTurnCase, turns: Sequence[Sequence[BfclCall]], *, states: bool = True
) -> tuple[TurnResults, ...]:
    """Return the results of every turn, run on new instances.

    Args:
        case: The case.
        turns: The calls of each turn.
        states: Whether the states are needed; if not, they are empty.

    Raises:
        NotInstalledError: BFCL is not installed.
        CallRunnerError: BFCL's classes did not answer or failed.
    """
    question = {"classes": case.classes, "config": case.config, "long": case.is_long, "states": states, "turns": turns}
    return tuple(_parse_turn_results(turn) for turn in get_classes_process().ask(question)["turns"])


def _parse_turn_results(turn: JsonObject) -> TurnResults:
    results = turn["results"]
    return TurnResults(
        results=tuple(result["text"] for result in results),
        failed=tuple(result["failed"] for result in results),
        state=parse_state(turn["state"]),
    )
