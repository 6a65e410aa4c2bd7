"""`manage.py resend TRIAL`: launch a run that repeats one trial."""

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.runs.repeat import resend_trial


class Command(BaseCommand):
    """Command that repeats one trial in a new run."""

    help = "Repeat a stored trial in a new run, with the same settings and seeds."

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("trial", type=int)

    def handle(self, trial: int, **options: object) -> None:
        """Launch the run and print its number and the path of its page.

        Raises:
            CommandError: the trial cannot be repeated.
        """
        try:
            run = resend_trial(trial)
        except LaunchError as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self.stdout.write(f"Run {run.pk}: {reverse('run', args=[run.pk])}")
