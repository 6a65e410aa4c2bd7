"""Client of `lab_commands`, a process that launches runs and checks invariants."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any

from toolbench.installation import ROOT
from toolbench.running.database_user import build_confined_command

_MAX_ATTEMPTS, _PAUSE_SECONDS = 40, 0.5


class LabClient:
    """Starts the process and sends it requests, each one JSON line.

    Create it in the main thread: the process ends with the thread that started it.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = build_confined_command(
            [sys.executable, "-m", "benchmarks.chaos.lab_commands"], death_signal=signal.SIGKILL
        )
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Send a request and return the answer. While the database is unavailable, the request is sent again.

        Raises:
            RuntimeError: the database stays unavailable, or the process has ended.
        """
        for _ in range(_MAX_ATTEMPTS):
            answer = self._ask(json.dumps({"verb": verb, **arguments}))
            if "answer" in answer:
                return answer["answer"]
            time.sleep(_PAUSE_SECONDS)
        raise RuntimeError(f"The database stays unavailable: {answer['error']}")

    def stop(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("benchmarks.chaos.lab_commands has ended; its traceback is above.")
        found: dict[str, Any] = json.loads(answer)
        return found
