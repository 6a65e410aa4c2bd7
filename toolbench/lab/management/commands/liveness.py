"""`manage.py liveness [KIND]`: who showed signs of life, and when."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.worker.heartbeat import get_heartbeat_ages


class Command(BaseCommand):
    help = "List the processes of a kind with the seconds since their last sign of life; fails when none is fresh."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", nargs="?", default="worker", help="worker or scheduler")
        parser.add_argument("--within", type=float, default=60.0, help="seconds that count as fresh")

    def handle(self, kind: str, within: float, **options: object) -> None:
        silent = get_heartbeat_ages(kind)
        for name, seconds in silent.items():
            self.stdout.write(f"{name} {seconds:.1f} s")
        if not any(seconds <= within for seconds in silent.values()):
            raise CommandError(f"No {kind} showed a sign of life within {within:g} s.")
