"""`manage.py compare RUN RUN`: print the comparison of two sides that the page Compare shows."""

from argparse import ArgumentParser
from collections.abc import Sequence

from django.core.management.base import BaseCommand, CommandError

from toolbench.lab.management.eval.baseline import read_compared_rows
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE, check_run_exists
from toolbench.lab.management.remote_server import (
    add_server_arguments,
    check_no_unreadable,
    open_server,
    parse_parameters,
)
from toolbench.lab.metrics.export_table import ExportTable
from toolbench.lab.results.compare.export import export_comparison
from toolbench.lab.results.compare.query import PARAMETER_NAMES, CompareQuery


class Command(BaseCommand):
    """Command that compares two sides, both in this database or both in another installation."""

    help = "Compare two runs, or two sides such as a_model=x b_model=y, with intervals and p-values."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Define the arguments."""
        parser.add_argument(
            "sides",
            nargs="+",
            metavar="RUN|NAME=VALUE",
            help="two runs, the baseline first, or parameters of the page Compare",
        )
        add_server_arguments(parser)

    def handle(self, *, sides: Sequence[str], server: str, token: str, **options: object) -> None:
        """Print the title of the comparison, a line for each of its rows, and its notes.

        Raises:
            CommandError: the sides cannot be read or compared, a run does not exist, or the server did not answer or
                refused the request.
        """
        runs = [word for word in sides if word.isdecimal()]
        assignments = [word for word in sides if word not in runs]
        run_assignments = [f"{name}={run}" for name, run in zip(("a_run", "b_run"), runs, strict=False)]
        parameters = parse_parameters([*run_assignments, *assignments], PARAMETER_NAMES)
        query = CompareQuery.from_query(parameters)
        check_no_unreadable(query.ignored)
        if len(runs) > 2 or not query.is_complete or query.is_published or query.has_more_than_two:
            message = "Name two different runs, or two sides of measured trials such as a_model=x b_model=y."
            raise CommandError(message, returncode=REFUSED_EXIT_CODE)
        if server:
            with open_server(server, token) as client:
                table = client.request("GET", "/compare", **dict(parameters.lists()))["table"]
                self._print(ExportTable(table["title"], table["notes"], table["columns"], table["rows"]))
            return
        for run in runs:
            check_run_exists(int(run))
        self._print(export_comparison(query))

    def _print(self, table: ExportTable) -> None:
        lines = [f"{row.name}: {row.text}. {row.result}".rstrip() for row in read_compared_rows(table)]
        self.stdout.write("\n".join([table.title, *(lines or ["Nothing can be compared."]), *table.notes]))
