"""`manage.py report RUN --out DIR`: write a run as files."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.interchange.report.write import ReportError, write_report
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE


class Command(BaseCommand):
    """Command that writes the report of a run."""

    help = "Write a run as files: one for each finished trial, the summaries, and the matrix as Markdown."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("run", type=int)
        parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="a new or empty folder")

    def handle(self, *, run: int, out: Path, **options: object) -> None:
        """Write the files and print their number.

        Raises:
            CommandError: the report cannot be written.
        """
        try:
            names = write_report(run, out)
        except (ReportError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self.stdout.write(f"{len(names)} files in {out}")
