"""The other end of `lab_commands`: a process that launches runs and checks invariants when a JSON line asks for it."""

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
    """Start it in the main thread."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        command = build_confined_command(
            [sys.executable, "-m", "benchmarks.chaos.lab_commands"], death_signal=signal.SIGKILL
        )
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=dict(environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Return the answer. While the database is away it is asked again; raises RuntimeError when it stays away."""
        for _ in range(_MAX_ATTEMPTS):
            answer = self._ask(json.dumps({"verb": verb, **arguments}))
            if "answer" in answer:
                return answer["answer"]
            time.sleep(_PAUSE_SECONDS)
        raise RuntimeError(f"The database stays away: {answer['error']}")

    def stop(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _ask(self, line: str) -> dict[str, Any]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError("The process that launches and checks has ended; its traceback is above.")
        found: dict[str, Any] = json.loads(answer)
        return found
