"""`manage.py scheduler`: run the periodic jobs until SIGTERM or Ctrl-C."""

import signal
import threading

from django.core.management.base import BaseCommand

from toolbench.lab.schedule import build_schedule


class Command(BaseCommand):
    """Command of the scheduler process."""

    help = "Sweep and show signs of life, until SIGTERM or Ctrl-C."

    def handle(self, **options: object) -> None:
        """Run each due job, then wait for the next one, until SIGTERM or Ctrl-C."""
        stopped = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stopped.set())
        schedule = build_schedule()
        while not stopped.wait(schedule.tick()):
            pass
