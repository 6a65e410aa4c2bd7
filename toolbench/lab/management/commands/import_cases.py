"""`manage.py import_cases bfcl --category simple_python`: import public benchmark cases.

Importing the same cases again changes nothing.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.evals.bfcl.cases import NotInstalledError
from toolbench.lab.cases.bfcl_import import BFCL_CATEGORIES, BFCL_LICENCE, UnknownCategoryError, import_bfcl

REFUSED_EXIT_CODE = 2


class Command(BaseCommand):
    """Command that imports cases of BFCL."""

    help = "Brings in public cases. bfcl: the Berkeley leaderboard's Python cases, of one turn and of several."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("source", choices=["bfcl"])
        parser.add_argument("--category", action="append", metavar="NAME", help=f"{', '.join(BFCL_CATEGORIES)}; or all")
        parser.add_argument("--limit", type=int, help="only the first so many of each category")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import the categories, by default `simple_python`, and print the counts of each.

        Raises:
            CommandError: BFCL is not installed, or a category is unknown.
        """
        categories = options["category"] or ["simple_python"]
        try:
            brought = import_bfcl(BFCL_CATEGORIES if categories == ["all"] else categories, limit=options["limit"])
        except (NotInstalledError, UnknownCategoryError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        for case_set in brought:
            counts = f"{case_set.added} added, {case_set.changed} changed, {case_set.unchanged} as they were"
            self.stdout.write(f"BFCL {case_set.category}: {counts}. Public; licence {BFCL_LICENCE}.")
