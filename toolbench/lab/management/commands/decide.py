"""`manage.py decide success=90 within=20`: print which configuration a decision rule chooses, and why."""

from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from typing import Any

from django.core.management.base import BaseCommand

from toolbench.lab.management.remote_server import (
    add_server_arguments,
    check_no_unreadable,
    open_server,
    parse_parameters,
)
from toolbench.lab.results.decide.page import get_decide_page
from toolbench.lab.results.decide.query import DEFAULTS, DecideQuery
from toolbench.lab.results.decide.records import describe_row, row_to_json

PARAMETER_NAMES = ({*DEFAULTS} - {"rows"}) | {"run"}


class Command(BaseCommand):
    """Command that applies a decision rule to the results in this database or in another installation."""

    help = "Apply a decision rule as the page Decide does: success=90 within=20 want=fastest run=12."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Define the arguments."""
        parser.add_argument("rule", nargs="*", metavar="NAME=VALUE", help=", ".join(sorted(PARAMETER_NAMES)))
        add_server_arguments(parser)

    def handle(self, *, rule: Sequence[str], server: str, token: str, **options: object) -> None:
        """Print the decision, then a line for each configuration with its result and reasons, the best first.

        Raises:
            CommandError: the rule cannot be read, or the server did not answer or refused the request.
        """
        parameters = parse_parameters(rule, PARAMETER_NAMES)
        query = DecideQuery.from_query(parameters)
        check_no_unreadable(query.ignored)
        if server:
            with open_server(server, token) as client:
                decision = client.decide(**dict(parameters.lists()))
            self._print(decision["sentence"], decision["rows"])
            return
        page = get_decide_page(query)
        self._print(page.decision.sentence, [row_to_json(row) for row in page.rows])

    def _print(self, sentence: str, rows: Sequence[Mapping[str, Any]]) -> None:
        self.stdout.write(sentence)
        for row in rows:
            reasons = " ".join(reason["sentence"] for reason in row["reasons"])
            self.stdout.write(f"{row['label']}: {describe_row(row)}. {reasons}".rstrip())
