"""`manage.py liveness [KIND]`: list processes with the time since their last heartbeat."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.worker.health import get_heartbeat_ages


class Command(BaseCommand):
    """Command that fails if no process of a kind has sent a heartbeat lately."""

    help = "List the processes of a kind with the seconds since their last heartbeat. Fails if no heartbeat is recent."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("kind", nargs="?", default="worker", help="worker or scheduler")
        parser.add_argument("--within", type=float, default=60.0, help="maximum age of a recent heartbeat in seconds")

    def handle(self, kind: str, within: float, **options: object) -> None:
        """Print each process of the kind with the seconds since its last heartbeat.

        Raises:
            CommandError: no process of the kind sent a heartbeat in the last `within` seconds.
        """
        ages = get_heartbeat_ages(kind)
        for name, seconds in ages.items():
            self.stdout.write(f"{name} {seconds:.1f} s")
        if not any(seconds <= within for seconds in ages.values()):
            raise CommandError(f"No {kind} sent a heartbeat within {within:g} s.")
