"""`manage.py import_history FILE`: import the turns of another program from a file with one JSON object a line."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize
from django.urls import reverse

from toolbench.lab.interchange.history.import_file import import_history
from toolbench.lab.interchange.history.lines import HistoryImportError
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE


class Command(BaseCommand):
    """Command that imports a history, completely or not at all."""

    help = "Import a history in JSON Lines (docs/imports.md), completely or not at all."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **options: object) -> None:
        """Import the file and print the number of its turns and the path of the history's page.

        Raises:
            CommandError: the file cannot be read or imported.
        """
        try:
            with file.open("rb") as stream:
                history = import_history(stream, file.name)
        except (HistoryImportError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        count = history.turn_count
        self.stdout.write(f"{count} turn{pluralize(count)}: {reverse('history', args=[history.pk])}")
