"""`manage.py check_bfcl`: compare Toolbench's rules with the checker of BFCL.

BFCL's checker runs in a separate process.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.evals.bfcl import agreement
from toolbench.evals.bfcl.agreement import CheckerComparison
from toolbench.evals.bfcl.cases import NotInstalledError, iter_cases
from toolbench.evals.bfcl.multi_turn import agreement as multi_turn
from toolbench.evals.bfcl.multi_turn.cases import MULTI_TURN_CATEGORIES as MULTI_TURN
from toolbench.evals.bfcl.multi_turn.cases import iter_multi_turn_cases
from toolbench.lab.cases.bfcl_import import BFCL_CATEGORIES

MAX_DIFFERENCES_SHOWN = 10


class Command(BaseCommand):
    """Command that judges BFCL's golden answers, and changed ones, by both rules."""

    help = "Judges BFCL's golden answers, and the same with something changed, by our rules and by BFCL's checker."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th case only")
        parser.add_argument("--category", action="append", metavar="NAME", choices=BFCL_CATEGORIES, help="default: all")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print how many answers both judge the same, and at most `MAX_DIFFERENCES_SHOWN` that they do not.

        Raises:
            CommandError: BFCL is not installed, or an answer is judged differently.
        """
        try:
            found = _compare(options["category"] or BFCL_CATEGORIES, max(1, options["every"]))
        except NotInstalledError as error:
            raise CommandError(str(error)) from error
        golden = [comparison for comparison in found if comparison.kind == "golden"]
        agreed = sum(comparison.agrees for comparison in golden)
        self.stdout.write(f"Golden answers: {agreed} of {len(golden)} judged the same by both.")
        self.stdout.write(
            f"All answers: {sum(comparison.agrees for comparison in found)} of {len(found)} judged the same by both."
        )
        differing = [comparison for comparison in found if not comparison.agrees]
        for comparison in differing[:MAX_DIFFERENCES_SHOWN]:
            self.stdout.write(
                f"  {comparison.case}, {comparison.kind}: BFCL {comparison.checker_accepts}, "
                f"ours {comparison.toolbench_accepts}. {comparison.message}"
            )
        if differing:
            raise CommandError(f"{len(differing)} answers are judged otherwise.")


def _compare(categories: Sequence[str], stride: int) -> tuple[CheckerComparison, ...]:
    one_turn = [name for name in categories if name not in MULTI_TURN]
    several = [name for name in categories if name in MULTI_TURN]
    return (
        *agreement.compare_with_checker(islice(iter_cases(one_turn), 0, None, stride)),
        *multi_turn.compare_with_checker(islice(iter_multi_turn_cases(several), 0, None, stride)),
    )
