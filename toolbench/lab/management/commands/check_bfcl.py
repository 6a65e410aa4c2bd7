"""`manage.py check_bfcl`: compare Toolbench's rules with the checker of BFCL, the Berkeley leaderboard.

The checker runs in a separate process.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.evals.bfcl import agreement
from toolbench.evals.bfcl.agreement import CheckerComparison
from toolbench.evals.bfcl.cases import NotInstalledError, iter_cases
from toolbench.evals.bfcl.multi_turn import agreement as multi_turn_agreement
from toolbench.evals.bfcl.multi_turn.cases import MULTI_TURN_CATEGORIES, iter_multi_turn_cases
from toolbench.lab.cases.bfcl_import import BFCL_CATEGORIES

MAX_DIFFERENCES_SHOWN = 10


class Command(BaseCommand):
    """Command that judges BFCL's golden answers and changed copies of them by Toolbench's rules and BFCL's checker."""

    help = "Judge BFCL's golden answers and changed copies of them by Toolbench's rules and by BFCL's checker."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th case")
        parser.add_argument("--category", action="append", metavar="NAME", choices=BFCL_CATEGORIES, help="default: all")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print how many answers Toolbench and the checker judge alike, and the first MAX_DIFFERENCES_SHOWN others.

        Raises:
            CommandError: BFCL is not installed, or an answer is judged differently.
        """
        try:
            comparisons = _compare(options["category"] or BFCL_CATEGORIES, max(1, options["every"]))
        except NotInstalledError as error:
            raise CommandError(str(error)) from error
        golden = [comparison for comparison in comparisons if comparison.kind == "golden"]
        golden_agreed = sum(comparison.agrees for comparison in golden)
        self.stdout.write(f"Golden answers: {golden_agreed} of {len(golden)} are judged alike.")
        differing = [comparison for comparison in comparisons if not comparison.agrees]
        agreed = len(comparisons) - len(differing)
        self.stdout.write(f"All answers: {agreed} of {len(comparisons)} are judged alike.")
        for comparison in differing[:MAX_DIFFERENCES_SHOWN]:
            self.stdout.write(
                f"  {comparison.case_id}, {comparison.kind}: BFCL {comparison.checker_accepts}, "
                f"Toolbench {comparison.toolbench_accepts}. {comparison.message}"
            )
        if differing:
            raise CommandError(f"{len(differing)} answers are judged differently.")


def _compare(categories: Sequence[str], stride: int) -> tuple[CheckerComparison, ...]:
    single_turn = [name for name in categories if name not in MULTI_TURN_CATEGORIES]
    multi_turn = [name for name in categories if name in MULTI_TURN_CATEGORIES]
    return (
        *agreement.compare_with_checker(islice(iter_cases(single_turn), 0, None, stride)),
        *multi_turn_agreement.compare_with_checker(islice(iter_multi_turn_cases(multi_turn), 0, None, stride)),
    )
