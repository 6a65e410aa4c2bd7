"""`manage.py check_bfcl`: our rules against BFCL's own checker, which runs in a process of its own."""

from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.evals.bfcl.agreement import compare
from toolbench.evals.bfcl.cases import NotInstalled, cases

MOST_SHOWN = 10


class Command(BaseCommand):
    help = "Judges BFCL's golden answers, and the same with one thing wrong, by our rules and by BFCL's checker."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--every", type=int, default=1, metavar="N", help="each N-th case only")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = compare(islice(cases(), 0, None, max(1, options["every"])))
        except NotInstalled as error:
            raise CommandError(str(error)) from error
        golden = [one for one in found if one.kind == "golden"]
        agreed = sum(one.agrees for one in golden)
        self.stdout.write(f"Golden answers: {agreed} of {len(golden)} judged the same by both.")
        self.stdout.write(f"All answers: {sum(one.agrees for one in found)} of {len(found)} judged the same by both.")
        differing = [one for one in found if not one.agrees]
        for one in differing[:MOST_SHOWN]:
            self.stdout.write(f"  {one.case}, {one.kind}: BFCL {one.theirs}, ours {one.ours}. {one.says}")
        if differing:
            raise CommandError(f"{len(differing)} answers are judged otherwise.")
