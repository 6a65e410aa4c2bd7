"""`manage.py resend TRIAL`: sends a stored plan again."""

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.runs.repeat import resend_trial

REFUSED_EXIT_CODE = 2


class Command(BaseCommand):
    help = "Send a trial's stored plan again: a new run of one trial, with the same settings and seeds."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("trial", type=int)

    def handle(self, trial: int, **options: object) -> None:
        try:
            run = resend_trial(trial)
        except LaunchError as refused:
            raise CommandError(str(refused), returncode=REFUSED_EXIT_CODE) from refused
        self.stdout.write(f"Run {run.pk}: {reverse('run', args=[run.pk])}")
