"""A stack with its own PostgreSQL, broker, scheduler and workers, each of which a test can kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import psycopg
import redis
from django.conf import settings
from psycopg.errors import DeadlockDetected
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from tests.lab.durable_postgres import DurablePostgres
from tests.wait import wait_until
from toolbench.running.child_process import ChildProcess, ChildSpec
from toolbench.running.servers import Valkey

_ROOT = Path(settings.BASE_DIR)
_COMMAND_CODE = "import django; django.setup(); from tests.lab.stack_commands import main; main()"


_SCHEDULER_COMMAND = [sys.executable, "manage.py", "scheduler"]
_SERVER_NAMES = ("valkey", "scheduler")  # the children that every test finds; the others are its workers


class Stack:
    """The processes that `make up` starts, except the web server, on separate sockets."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tb-kill-", dir="/tmp"))
        self._postgres = DurablePostgres(self.folder)
        self._valkey = Valkey(self.folder / "valkey", self._postgres.sockets)
        self._children: dict[str, ChildProcess] = {}
        self._environment = {
            **os.environ,
            "DATABASE_URL": self._postgres.build_url(),
            "REDIS_URL": self._valkey.build_url(),
            "TOOLBENCH_VAR": str(self.folder),
            "PYTHONPATH": str(_ROOT),
            "DJANGO_SETTINGS_MODULE": "toolbench.settings",
        }

    def start(self) -> None:
        self._postgres.prepare()
        self._valkey.prepare()
        self.start_broker()
        self._run("manage.py", "migrate", "--verbosity", "0")
        self._start("scheduler", _SCHEDULER_COMMAND)

    def stop(self) -> None:
        for child in reversed(self._children.values()):
            child.kill()
            child.close()
        self._postgres.remove()
        shutil.rmtree(self.folder, ignore_errors=True)

    def reset(self) -> None:
        """Remove the workers, runs and messages of a test, however it ended.

        A server that the test killed or stopped runs again afterwards.
        """
        for name in self.workers():
            self._children.pop(name).kill()
        self._postgres.start()
        for name in _SERVER_NAMES:
            self.thaw(name)
        if not self.is_alive("valkey"):
            self.start_broker()
        if not self.is_alive("scheduler"):
            self._start("scheduler", _SCHEDULER_COMMAND)
        self._remove_rows()
        redis.Redis.from_url(self._valkey.build_url()).flushall()

    @retry(retry=retry_if_exception_type(DeadlockDetected), stop=stop_after_attempt(5), reraise=True)
    def _remove_rows(self) -> None:
        """Remove all runs and providers, while the scheduler reads the tables in another order."""
        with psycopg.connect(self._postgres.build_url()) as connection:
            connection.execute("TRUNCATE lab_run, lab_provider CASCADE")

    def start_postgres(self) -> None:
        self._postgres.start()

    def kill_postgres(self) -> None:
        self._postgres.crash()

    def start_broker(self) -> None:
        spec = ChildSpec("valkey", self._valkey.build_command(), self._valkey.environment, self._valkey.working_folder)
        self._children["valkey"] = ChildProcess(spec, self.folder)
        wait_until(self._valkey.is_ready)

    def start_worker(self, name: str) -> ChildProcess:
        """Start a worker, and return when it accepts messages."""
        command = [sys.executable, "-m", "celery", "-A", "toolbench.celery", "worker", "-P", "threads", "-c", "4"]
        command += ["-n", f"{name}@test", "-l", "INFO", "--without-gossip", "--without-mingle"]
        child = self._start(name, command)
        wait_until(lambda: " ready." in child.log.read_text(errors="replace"))
        return child

    def kill(self, name: str) -> None:
        self._children[name].kill()

    def freeze(self, name: str) -> None:
        os.kill(self._children[name].pid, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        if self.is_alive(name):
            os.kill(self._children[name].pid, signal.SIGCONT)

    def workers(self) -> set[str]:
        return self._children.keys() - set(_SERVER_NAMES)

    def is_alive(self, name: str) -> bool:
        return self._children[name].poll_exit_code() is None

    def log(self, name: str) -> str:
        return self._children[name].log.read_text(errors="replace")

    def launch(self, base_url: str, trials: int) -> int:
        return int(self._ask("launch", base_url, str(trials)))

    def summary(self, run_id: int) -> dict[str, Any]:
        found: dict[str, Any] = self._ask("summary", str(run_id))
        return found

    def count(self, condition: str, run_id: int) -> int:
        """Return the number of trials of the run that meet an SQL condition."""
        with psycopg.connect(self._postgres.build_url()) as connection:
            query = f"SELECT count(*) FROM lab_trial WHERE run_id = %s AND {condition}"
            row = connection.execute(query.encode(), [run_id]).fetchone()
        return int(row[0]) if row else 0

    def wait_for_the_end(self, run_id: int) -> None:
        def ended() -> bool:
            with psycopg.connect(self._postgres.build_url()) as connection:
                row = connection.execute("SELECT state FROM lab_run WHERE id = %s", [run_id]).fetchone()
            return row == ("finished",)

        wait_until(ended)

    def _ask(self, *arguments: str) -> Any:
        return json.loads(self._run("-c", _COMMAND_CODE, *arguments))

    def _run(self, *arguments: str) -> str:
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=_ROOT, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _start(self, name: str, command: list[str]) -> ChildProcess:
        (self.folder / f"{name}.log").unlink(missing_ok=True)
        self._children[name] = ChildProcess(ChildSpec(name, command, self._environment, _ROOT), self.folder)
        return self._children[name]
