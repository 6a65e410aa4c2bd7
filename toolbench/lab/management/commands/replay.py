"""`manage.py replay RUN --check`: replay the stored trials of a run and compare the verdicts."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.management.known_names import check_run_exists
from toolbench.lab.replays.check import check_replay

DIFFERS_EXIT_CODE = 1
MAX_DIFFERENCES_SHOWN = 20


class Command(BaseCommand):
    """Command that replays a run without sending a request."""

    help = "Replay a run's stored trials under their own settings, without a request, and compare the verdicts."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("run", type=int)
        parser.add_argument(
            "--check", action="store_true", help="exit with 1 if the verdict or end of a trial differs or is unknown"
        )

    def handle(self, *args: Any, run: int, check: bool, **options: Any) -> None:
        """Replay the run and print the first MAX_DIFFERENCES_SHOWN trials that do not have the stored verdict and end.

        Trials that differ come first, then those whose replay stopped early, then those that newer rules change.

        Raises:
            CommandError: there is no such run, or with `check`, the verdict or end of a trial differs or is unknown.
        """
        check_run_exists(run)
        result = check_replay(run)
        self.stdout.write(result.sentence)
        for line in (*result.differing, *result.unknown, *result.by_newer_rules)[:MAX_DIFFERENCES_SHOWN]:
            self.stdout.write(f"  {line}")
        if check and not result.holds:
            message = "The replay does not reproduce the run: see the trials that differ or are unknown."
            raise CommandError(message, returncode=DIFFERS_EXIT_CODE)
