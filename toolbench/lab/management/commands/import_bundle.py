"""`manage.py import_bundle FILE`: a bundle or a log becomes a run labelled as imported."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.interchange.import_run import import_run
from toolbench.lab.interchange.safe_zip import RunImportError

REFUSED_EXIT_CODE = 2


class Command(BaseCommand):
    help = "Import an evidence bundle or a log of Inspect AI as a run labelled imported: whole or not at all."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)

    def handle(self, *, file: Path, **options: object) -> None:
        try:
            with file.open("rb") as opened:
                run = import_run(opened, file.name, owner=None)
        except (RunImportError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self.stdout.write(f"Run {run.pk}, imported: {reverse('run', args=[run.pk])}")
