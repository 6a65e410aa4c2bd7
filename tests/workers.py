"""A real Celery worker beside the tests, on the test database."""

import os
import signal
import sys
import time
from pathlib import Path
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from toolbench.running.children import Child, Spec
from toolbench.running.identity import confined

_PATIENCE_SECONDS = 60
_ROOT = Path(settings.BASE_DIR)


class WorkerProcess:
    """A Celery worker in a process of its own, with the short leases of the test session."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._child: Child | None = None

    @property
    def child(self) -> Child:
        assert self._child is not None, "the worker was not started"
        return self._child

    @property
    def log(self) -> str:
        return self.child.log.read_text(errors="replace")

    def start(self) -> None:
        """Returns when the worker takes messages."""
        logs = Path(os.environ["TOOLBENCH_VAR"])
        (logs / f"{self.name}.log").unlink(missing_ok=True)
        command = [sys.executable, "-m", "celery", "-A", "toolbench.celery", "worker", "-P", "threads", "-c", "4"]
        command += ["-n", f"{self.name}@test", "-l", "INFO", "--without-gossip", "--without-mingle"]
        command = confined(command, death_signal=signal.SIGKILL)  # a killed test run leaves no worker behind
        self._child = Child(Spec(self.name, command, environment_of_test_database(), _ROOT), logs)
        until = time.monotonic() + _PATIENCE_SECONDS
        while " ready." not in self.log:
            if self.child.exit_code() is not None or time.monotonic() > until:
                raise RuntimeError(f"the worker did not start:\n{self.log}")
            time.sleep(0.05)

    def freeze(self) -> None:
        """Stops its clock: as a machine that hangs."""
        os.kill(self.child.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.child.pid, signal.SIGCONT)

    def kill(self) -> None:
        self.child.kill()

    def stop(self) -> None:
        """Kills what is left. A test that wants the warm end sends the signal itself."""
        if self._child:
            self._child.kill()


def environment_of_test_database() -> dict[str, str]:
    """The environment in which a process of its own sees what this test sees. Only committed rows: the test needs
    `transactional_db`."""
    database = connection.settings_dict
    url = f"postgresql://postgres@{quote(database['HOST'], safe='')}/{database['NAME']}"
    return {**os.environ, "DATABASE_URL": url, "PYTHONPATH": str(_ROOT)}
