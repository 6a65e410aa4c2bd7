"""`manage.py bundle RUN`: write a run as one file that opens offline and that another installation can import."""

from pathlib import Path

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.interchange.bundle.selection import BundleError, select_for_bundle
from toolbench.lab.interchange.bundle.write import write_bundle
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.lab.management.new_files import open_new_file


class Command(BaseCommand):
    """Command that writes an evidence bundle."""

    help = "Write a run with traces, statistics, plans and hashes as one zip file that opens offline."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("run", type=int, help="number of the run")
        parser.add_argument("--out", type=Path, metavar="FILE", help="a new file; default: toolbench-bundle-RUN.zip")
        parser.add_argument("--private", action="store_true", help="include private test cases")

    def handle(self, *, run: int, out: Path | None, private: bool, **options: object) -> None:
        """Write the bundle to a new file and print what it leaves out, the number of members and the evidence hash.

        Raises:
            CommandError: the file exists, or the bundle cannot be written.
        """
        path = out or Path(f"toolbench-bundle-{run}.zip")
        try:
            select_for_bundle(run, private=private)  # it raises BundleError before the new file is created
            with open_new_file(path) as file:
                manifest = write_bundle(run, file, private=private)
        except FileExistsError as error:
            raise CommandError(f"{path} already exists. Name a new file.", returncode=REFUSED_EXIT_CODE) from error
        except (BundleError, OSError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        for omission in manifest.left_out:
            self.stdout.write(f"Left out: {omission.what} ({omission.why}).")
        self.stdout.write(f"{len(manifest.members)} members in {path}; hash of the evidence: {manifest.evidence}")
