"""Client of the separate process that runs calls on BFCL's classes (environment.py)."""

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
from toolbench.evals.bfcl.cases import BfclUnavailableError, NotInstalledError, is_installed
from toolbench.evals.bfcl.golden_answers import BfclCall
from toolbench.evals.bfcl.multi_turn import environment
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase
from toolbench.evals.bfcl.multi_turn.states import ClassStates, parse_state

START_TIMEOUT_SECONDS = 60.0
ANSWER_TIMEOUT_SECONDS = 5.0
_READ_BYTES = 1 << 16


class CallRunnerError(BfclUnavailableError):
    """BFCL's classes failed or did not answer in time, so their process was killed; the message says why."""


@dataclass(frozen=True, slots=True)
class TurnResults:
    """The results of the calls of one turn, and the state after the turn.

    Attributes:
        results: The result of each call, as the text that BFCL compares.
        failed: Whether each call failed.
        state: The state of the classes; empty if it was not requested.
    """

    results: tuple[str, ...]
    failed: tuple[bool, ...]
    state: ClassStates


@dataclass(eq=False, slots=True)
class ClassesProcess:
    """The process of BFCL's classes, which is started for the first request and again after it was killed.

    Every request contains its conversation from the beginning, so that no state depends on the process. Thread-safe:
    one request runs at a time.

    Attributes:
        command: The command that starts the process.
        timeout_seconds: The time limit of an answer.
    """

    command: tuple[str, ...] = (sys.executable, "-I", str(Path(environment.__file__)))
    timeout_seconds: float = ANSWER_TIMEOUT_SECONDS
    _process: subprocess.Popen[bytes] | None = None
    _unread_bytes: bytes = b""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, request: JsonObject) -> JsonObject:
        """Send a request and return the answer, which environment.py describes.

        Raises:
            NotInstalledError: BFCL is not installed.
            CallRunnerError: The process did not answer or failed.
        """
        with self._lock:
            try:
                return self._send(request)
            except (CallRunnerError, OSError, ValueError) as error:
                self._kill()
                raise CallRunnerError(str(error)) from error

    def close(self) -> None:
        """Kill the process if it is running."""
        with self._lock:
            self._kill()

    def _send(self, request: JsonObject) -> JsonObject:
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        answer: JsonObject = json.loads(self._read_line(process, self.timeout_seconds))
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the process and wait until it is ready.

        The only environment variable of the process is PATH, so that it has no secret of Toolbench.

        Raises:
            NotInstalledError: BFCL is not installed.
            CallRunnerError: The process did not become ready.
        """
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
        deadline = time.monotonic() + seconds
        while b"\n" not in self._unread_bytes:
            remaining_seconds = deadline - time.monotonic()
            if remaining_seconds <= 0 or not select.select([process.stdout], [], [], remaining_seconds)[0]:
                raise CallRunnerError(
                    f"BFCL's classes did not answer within {seconds:g} s, so their process was ended."
                )
            chunk = os.read(process.stdout.fileno(), _READ_BYTES)
            if not chunk:
                raise CallRunnerError("BFCL's classes failed: their process has ended.")
            self._unread_bytes += chunk
        line, _, self._unread_bytes = self._unread_bytes.partition(b"\n")
        return line

    def _kill(self) -> None:
        process, self._process, self._unread_bytes = self._process, None, b""
        if process is not None:
            atexit.unregister(self.close)
            process.kill()
            process.communicate()


@cache
def get_classes_process() -> ClassesProcess:
    """Return the one ClassesProcess of this Python process, which all callers share."""
    return ClassesProcess()


def run_calls(
    case: MultiTurnCase, turns: Sequence[Sequence[BfclCall]], *, include_states: bool = True
) -> tuple[TurnResults, ...]:
    """Run calls on new instances of the case's classes, and return the results of every turn, in order.

    Args:
        case: The case.
        turns: The calls of each turn.
        include_states: Whether to return the states; if not, they are empty.

    Raises:
        NotInstalledError: BFCL is not installed.
        CallRunnerError: BFCL's classes did not answer or failed.
    """
    request = {
        "classes": case.classes,
        "config": case.config,
        "long": case.is_long,
        "states": include_states,
        "turns": turns,
    }
    return tuple(_parse_turn_results(turn) for turn in get_classes_process().ask(request)["turns"])


def _parse_turn_results(turn: JsonObject) -> TurnResults:
    results = turn["results"]
    return TurnResults(
        results=tuple(result["text"] for result in results),
        failed=tuple(result["failed"] for result in results),
        state=parse_state(turn["state"]),
    )
