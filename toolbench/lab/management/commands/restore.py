"""`manage.py restore FILE`: replace the database by a backup."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from toolbench.lab.operations.backup import BackupError
from toolbench.lab.operations.database_programs import DatabaseProgramError
from toolbench.lab.operations.restore import UnfinishedRestoreError, restore_backup


class Command(BaseCommand):
    """Command that restores a backup."""

    help = "Replace the database by a backup and migrate it. Running runs and active schedules are paused."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("file", type=Path, help="the backup")
        parser.add_argument("--replace", action="store_true", help="delete the runs that are in the database now")
        parser.add_argument(
            "--programs",
            type=Path,
            metavar="FOLDER",
            help="folder of pg_restore and psql; default: those of Toolbench, else those on the PATH",
        )

    def handle(self, *args: Any, file: Path, replace: bool, programs: Path | None, **options: Any) -> None:
        """Restore the backup and print what was restored, what is paused and which key files were replaced.

        Raises:
            CommandError: the backup cannot be restored. The message says whether the database was changed.
        """
        try:
            result = restore_backup(file, replace=replace, programs=programs)
        except (BackupError, DatabaseProgramError) as error:
            raise CommandError(f"Nothing was changed. {error}") from error
        except UnfinishedRestoreError as error:
            raise CommandError(str(error)) from error
        manifest = result.manifest
        runs, trials = manifest.runs, manifest.trials
        self.stdout.write(
            f"Restored {runs} run{pluralize(runs)} and {trials} trial{pluralize(trials)} of {manifest.created_at}."
        )
        paused_runs, paused_schedules = result.paused_runs, result.paused_schedules
        if paused_runs or paused_schedules:
            self.stdout.write(
                f"Paused {paused_runs} run{pluralize(paused_runs)} and {paused_schedules} "
                f"schedule{pluralize(paused_schedules)}. Resume them on their pages; until then, they send no request."
            )
        for key_file in result.kept_keys:
            self.stdout.write(f"A key file was replaced; the earlier one is {key_file}.")
        if not manifest.keys:
            self.stdout.write(
                "The backup has no key files. Stored keys of providers can be read only with the file "
                "provider_keys.key of the installation that wrote the backup."
            )
