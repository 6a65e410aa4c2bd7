"""`manage.py backup FILE`: write the whole database into one file."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from toolbench.lab.operations.backup import BackupError, write_backup
from toolbench.lab.operations.database_programs import DatabaseProgramError
from toolbench.lab.operations.storage_space import format_bytes


class Command(BaseCommand):
    """Command that writes a backup."""

    help = "Write the whole database into one file. Toolbench may run meanwhile."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("file", type=Path, help="the new file")
        parser.add_argument(
            "--with-keys",
            action="store_true",
            help="include the files that decrypt stored keys of providers; keep the backup secret",
        )
        parser.add_argument(
            "--programs",
            type=Path,
            metavar="FOLDER",
            help="folder of pg_dump; default: the folder in the installation of Toolbench, else the PATH",
        )

    def handle(self, *args: Any, file: Path, with_keys: bool, programs: Path | None, **options: Any) -> None:
        """Write the backup and print how many runs and trials it contains, its size, and whether keys are in it.

        Raises:
            CommandError: the backup cannot be written.
        """
        try:
            manifest = write_backup(file, with_keys=with_keys, programs=programs)
        except (BackupError, DatabaseProgramError) as error:
            raise CommandError(str(error)) from error
        runs, trials = manifest.runs, manifest.trials
        size = format_bytes(file.stat().st_size)
        self.stdout.write(f"{file}: {runs} run{pluralize(runs)}, {trials} trial{pluralize(trials)}, {size}")
        if manifest.keys:
            self.stdout.write(
                f"It contains {', '.join(manifest.keys)}: everybody who has the file can read the stored keys."
            )
        else:
            self.stdout.write(
                "It contains stored keys of providers in encrypted form, without the file that decrypts them."
            )
