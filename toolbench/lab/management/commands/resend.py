"""`manage.py resend TRIAL`: run the stored plan of a trial again."""

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.runs.repeat import resend_trial

REFUSED_EXIT_CODE = 2


class Command(BaseCommand):
    """Command that launches a new run of one trial."""

    help = "Send a trial's stored plan again: a new run of one trial, with the same settings and seeds."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("trial", type=int)

    def handle(self, trial: int, **options: object) -> None:
        """Launch the run and print the path of its page.

        Raises:
            CommandError: the trial cannot be run again.
        """
        try:
            run = resend_trial(trial)
        except LaunchError as refused:
            raise CommandError(str(refused), returncode=REFUSED_EXIT_CODE) from refused
        self.stdout.write(f"Run {run.pk}: {reverse('run', args=[run.pk])}")
