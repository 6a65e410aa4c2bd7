"""`manage.py import_history FILE`: import turns of another program, one JSON object per line."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.interchange.history.import_file import import_history
from toolbench.lab.interchange.history.lines import HistoryImportError

REFUSED_EXIT_CODE = 2


class Command(BaseCommand):
    """Command that imports a history, completely or not at all."""

    help = "Import a history in JSON lines (docs/imports.md). It is there whole or not at all."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **options: object) -> None:
        """Import the file and print the path of the history's page.

        Raises:
            CommandError: the file cannot be read or imported.
        """
        try:
            with file.open("rb") as opened:
                history = import_history(opened, file.name)
        except (HistoryImportError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self.stdout.write(f"{history.turn_count} turns: {reverse('history', args=[history.pk])}")
