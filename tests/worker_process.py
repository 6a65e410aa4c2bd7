"""Celery worker process for tests, with the test database."""

import os
import signal
from multiprocessing import get_context
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from tests.wait import wait_until
from toolbench.celery import app
from toolbench.running.confine import die_with_parent

_TIMEOUT_SECONDS = 60
_LEASE_SECONDS = 60
_ROOT = Path(settings.BASE_DIR)
# The fork server imports these modules once; each worker is still its own process.
_PRELOADED_MODULES = ["toolbench.wsgi", "toolbench.web.urls", "toolbench.lab.tasks"]
_PRELOADED_MODULES += ["celery.bin.celery", "celery.apps.worker", "celery.concurrency.thread", "kombu.transport.redis"]
_FORKSERVER = get_context("forkserver")


class WorkerProcess:
    """A Celery worker in a process of its own, with leases as long as in production.

    The short leases of the session expire on a busy machine while a trial runs. It is then sent again, and a test that
    counts requests fails.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._log = Path(os.environ["TOOLBENCH_VAR"]) / f"{name}.log"
        self._process: ForkServerProcess | None = None

    def start(self) -> None:
        """Start the worker and return as soon as it takes messages."""
        self._log.write_text("")
        arguments = ["worker", "-P", "threads", "-c", "4", "-n", f"{self.name}@test", "-l", "INFO"]
        arguments += ["--without-gossip", "--without-mingle"]
        _FORKSERVER.set_forkserver_preload(_PRELOADED_MODULES)
        self._process = _FORKSERVER.Process(target=_run_worker, args=[arguments, self._log])
        with pytest.MonkeyPatch.context() as patch:
            for name, value in build_environment().items():
                patch.setenv(name, value)
            self._process.start()
        wait_until(self._is_ready_or_has_ended, every=0.02, seconds=_TIMEOUT_SECONDS, describe=self._describe)
        assert self._process.is_alive(), self._describe()

    def stop(self) -> None:
        """Kill the worker."""
        if self._process:
            self._process.kill()
            self._process.join()

    def _is_ready_or_has_ended(self) -> bool:
        assert self._process is not None
        return " ready." in self._log.read_text(errors="replace") or not self._process.is_alive()

    def _describe(self) -> str:
        return f"the worker did not start:\n{self._log.read_text(errors='replace')}"


def _run_worker(arguments: list[str], log: Path) -> None:
    die_with_parent(os.getppid(), signal.SIGKILL)  # a killed test run leaves no worker behind
    settings.LEASE_SECONDS = _LEASE_SECONDS  # the fork server has read the environment of the session
    with log.open("ab") as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    app.worker_main(arguments)


def build_environment() -> dict[str, str]:
    """Return the environment in which another process uses the test database.

    The process sees only committed rows, so the test needs `transactional_db`.
    """
    database = connection.settings_dict
    url = f"postgresql://postgres@{quote(database['HOST'], safe='')}/{database['NAME']}"
    return {"DATABASE_URL": url, "PYTHONPATH": str(_ROOT)}
