"""`manage.py export_inspect RUN --out DIR`: write a run as logs of Inspect AI."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.interchange.bundle.selection import BundleError
from toolbench.lab.interchange.inspect_ai.write import write_logs
from toolbench.lab.interchange.report.write import ReportError
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE


class Command(BaseCommand):
    """Command that writes logs of Inspect AI."""

    help = "Write a run as logs of Inspect AI, one for each configuration. `inspect view` opens the folder."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("run", type=int, help="number of the run")
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new or empty folder")
        parser.add_argument("--private", action="store_true", help="include private test cases")

    def handle(self, *, run: int, out: Path, private: bool, **options: object) -> None:
        """Write the logs and print how to open them.

        Raises:
            CommandError: the logs cannot be written.
        """
        try:
            names = write_logs(run, out, private=private)
        except (BundleError, ReportError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self.stdout.write(f"{len(names)} log{'s' if len(names) > 1 else ''}: inspect view --log-dir {out}")
