"""`manage.py reclassify`: determine the causes of stored trials again, without sending a request."""

from django.core.management.base import BaseCommand, CommandParser

from toolbench.evals.causes.table import read_taxonomy_version
from toolbench.lab.management.known_names import check_run_exists
from toolbench.lab.metrics.cells import recompute_all_stale
from toolbench.lab.replays.reclassify import reclassify


class Command(BaseCommand):
    """Command that reclassifies the trials of one run or of all runs."""

    help = "Determine the causes of trials again from their stored steps. No request is sent."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("--run", type=int, help="only this run")
        parser.add_argument(
            "--again", action="store_true", help="also trials that this version of the taxonomy has classified"
        )

    def handle(self, *, run: int | None, again: bool, **options: object) -> None:
        """Reclassify the trials, recompute stale cells and print how many were classified and how many changed.

        Raises:
            CommandError: there is no such run.
        """
        check_run_exists(run)
        classified, changed = reclassify(run_id=run, again=again)
        recompute_all_stale(run)
        version = read_taxonomy_version()
        self.stdout.write(f"{classified} trials classified by taxonomy version {version}, {changed} with another cause")
