"""`manage.py rejudge RUN` or `--scenario SLUG`: re-judge stored trials without sending a request."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from toolbench.lab.management.known_names import REFUSED_EXIT_CODE, check_run_exists, check_scenario_exists
from toolbench.lab.replays.rejudge import list_run_trials, list_scenario_trials, rejudge_trials

MAX_CHANGES_SHOWN = 20


class Command(BaseCommand):
    """Command that re-judges the trials of a run or of a scenario."""

    help = (
        "Re-judge stored trials by the present scenarios and rules. The earlier verdicts are kept with their versions."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("run", type=int, nargs="?")
        parser.add_argument("--scenario", help="every finished trial of this scenario, in all runs")

    def handle(self, *args: Any, run: int | None, scenario: str | None, **options: Any) -> None:
        """Re-judge the trials and print at most MAX_CHANGES_SHOWN changed outcomes.

        Raises:
            CommandError: neither or both of run and scenario are given, or the one that is given does not exist.
        """
        if run is not None and scenario is None:
            check_run_exists(run)
            trials = list_run_trials(run)
        elif scenario is not None and run is None:
            check_scenario_exists(scenario)
            trials = list_scenario_trials(scenario)
        else:
            raise CommandError("Name either a run or --scenario SLUG.", returncode=REFUSED_EXIT_CODE)
        result = rejudge_trials(trials.values_list("pk", flat=True))
        self.stdout.write(result.sentence)
        for change in result.changed[:MAX_CHANGES_SHOWN]:
            self.stdout.write(
                f"  trial {change.trial} ({change.scenario}): {change.before} → {change.after}. {change.sentence}"
            )
