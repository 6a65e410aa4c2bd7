"""`manage.py scheduler`: run the periodic jobs until SIGTERM or Ctrl-C."""

import signal
import threading
from contextlib import suppress

from django.core.management.base import BaseCommand
from django.db import DatabaseError

from toolbench.lab.schedule import build_schedule
from toolbench.lab.worker.health import remove_heartbeat


class Command(BaseCommand):
    """Command of the scheduler process."""

    help = "Run the periodic jobs, such as sweeps and heartbeats, until SIGTERM or Ctrl-C."

    def handle(self, **options: object) -> None:
        """Run the due jobs and wait for the next, until SIGTERM or Ctrl-C."""
        stop_requested = threading.Event()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signal_number, lambda *_: stop_requested.set())
        schedule = build_schedule()
        while not stop_requested.wait(schedule.tick()):
            pass
        with suppress(DatabaseError):  # the process ends in any case, and its heartbeat expires
            remove_heartbeat("scheduler")
