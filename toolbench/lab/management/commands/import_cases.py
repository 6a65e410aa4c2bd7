"""`manage.py import_cases bfcl --category simple_python`: import public benchmark cases.

A case that was imported before gets a new version if its definition has changed. A deleted case is added again.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.evals.bfcl.cases import NotInstalledError
from toolbench.lab.cases.bfcl_import import BFCL_CATEGORIES, BFCL_LICENCE, UnknownCategoryError, import_bfcl
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE


class Command(BaseCommand):
    """Command that imports cases of BFCL."""

    help = "Import public benchmark cases. bfcl: the Python cases of BFCL with one and with several turns."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("source", choices=["bfcl"])
        parser.add_argument(
            "--category",
            action="append",
            metavar="NAME",
            help=f"category, repeatable: {', '.join(BFCL_CATEGORIES)}, or all; default: simple_python",
        )
        parser.add_argument("--limit", type=int, help="maximum number of benchmark cases of each category")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import the categories, by default `simple_python`, and print the counts of each.

        Raises:
            CommandError: BFCL is not installed, a category is unknown, or the limit is negative.
        """
        if (options["limit"] or 0) < 0:
            raise CommandError("--limit has to be 0 or more.", returncode=REFUSED_EXIT_CODE)
        categories = options["category"] or ["simple_python"]
        try:
            results = import_bfcl(BFCL_CATEGORIES if categories == ["all"] else categories, limit=options["limit"])
        except (NotInstalledError, UnknownCategoryError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        for result in results:
            counts = f"{result.added} added, {result.changed} changed, {result.unchanged} unchanged"
            self.stdout.write(f"BFCL {result.category}: {counts}. Public; licence {BFCL_LICENCE}.")
