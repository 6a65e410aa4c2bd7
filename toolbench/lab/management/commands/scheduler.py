"""`manage.py scheduler`: ticks until it is told to stop."""

import signal
import threading

from django.core.management.base import BaseCommand

from toolbench.lab.schedule import build_schedule


class Command(BaseCommand):
    help = "Sweep and show signs of life, until SIGTERM or Ctrl-C."

    def handle(self, **options: object) -> None:
        stopped = threading.Event()
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, lambda *_: stopped.set())
        schedule = build_schedule()
        while not stopped.wait(schedule.tick()):
            pass
