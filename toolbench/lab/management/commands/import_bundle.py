"""`manage.py import_bundle FILE`: import a bundle or a log of Inspect AI as a run labelled imported."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.safe_zip import RunImportError
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE


class Command(BaseCommand):
    """Command that imports a run, completely or not at all."""

    help = "Import an evidence bundle or a log of Inspect AI as an imported run, completely or not at all."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("file", type=Path, help="a bundle (.zip) or a log (.eval or .json)")

    def handle(self, *, file: Path, **options: object) -> None:
        """Import the file and print the path of the run's page.

        Raises:
            CommandError: the file cannot be read or imported.
        """
        try:
            with file.open("rb") as stream:
                run = import_run(stream, file.name, owner=None)
        except (RunImportError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self.stdout.write(f"Run {run.pk}, imported: {reverse('run', args=[run.pk])}")
