"""`manage.py probe MODELS`: probe endpoints from the command line."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from toolbench.lab.endpoints.probe_job import OPEN_STATES, queue_conformance_probes, run_probe
from toolbench.lab.endpoints.probe_page import ProbePage, get_probe_page
from toolbench.lab.endpoints.probe_storage import requeue_lost_probes
from toolbench.lab.management.confirmation import is_confirmed
from toolbench.lab.management.eval.names import EvalError, choose_models
from toolbench.lab.management.eval.options import EvalOptions
from toolbench.lab.management.eval.progress import InterruptCounter, count_interrupts
from toolbench.lab.management.eval.providers import check_reachable
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.lab.models import Model, Probe
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.auto_method import decide_waiting_methods

INCONCLUSIVE_EXIT_CODE, UNFINISHED_EXIT_CODE = 1, 3
POLL_SECONDS = 0.3


class Command(BaseCommand):
    """Command that probes the endpoints of models and prints what each of them can do."""

    help = (
        "Probe the endpoints of models and print what each can do. Exit codes: 0 done; 1 a probe did not find out "
        "whether calls come back; 2 the request is refused; 3 not finished, a worker continues the probes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Define the arguments."""
        parser.add_argument("models", help="names, vendors, tags, globs, !word to leave out, all; comma list")
        parser.add_argument(
            "--provider",
            default="",
            help="providers, chosen in the same way; default: all except simulated and local ones",
        )
        parser.add_argument("--yes", action="store_true", help="send paid requests without asking")

    def handle(self, *, models: str, provider: str, yes: bool, **options: Any) -> None:
        """Queue a probe of each model, run the probes in this process and print their results.

        Raises:
            CommandError: the request is refused, a probe is not finished or did not find out whether calls come back.
        """
        try:
            chosen_models = choose_models(EvalOptions(models=models, provider=provider))
            check_reachable(chosen_models)
            probe_ids = [probe.pk for probe in _queue_probes(chosen_models, yes=yes)]
        except EvalError as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        with count_interrupts() as interrupts:
            for probe_id in probe_ids:
                if _run_until_done(probe_id, interrupts):
                    self._print(get_probe_page(probe_id))
        if open_count := Probe.objects.filter(pk__in=probe_ids, state__in=OPEN_STATES).count():
            message = f"{open_count} of {len(probe_ids)} probes are not finished. A worker continues them."
            raise CommandError(message, returncode=UNFINISHED_EXIT_CODE)
        inconclusive_count = len(probe_ids) - Probe.objects.filter(pk__in=probe_ids, ok=True).count()
        if inconclusive_count:
            message = f"{inconclusive_count} of {len(probe_ids)} probes did not find out whether calls come back."
            raise CommandError(message, returncode=INCONCLUSIVE_EXIT_CODE)

    def _print(self, page: ProbePage) -> None:
        """Print the checks of a finished probe, or its sentence if it has none, and counts of requests and tokens."""
        probe = page.probe
        self.stdout.write(f"{probe.provider_name}: {probe.model_name}")
        for check in page.checks:
            self.stdout.write(f"  {check.word}: {check.title}. {check.sentence}")
        if not page.checks:
            self.stdout.write(f"  {probe.sentence}")
        self.stdout.write(f"  {page.requests:,} requests, {page.tokens:,} tokens, page /probes/{probe.pk}/")


def _queue_probes(models: tuple[Model, ...], *, yes: bool) -> list[Probe]:
    """Queue a probe of each model and return the probes; ask first if requests are paid, unless `yes` is True.

    Raises:
        EvalError: paid requests are not confirmed.
    """
    why = "A user requested this probe at the command line."
    try:
        return queue_conformance_probes(models, why=why)
    except PaidRequestsUnconfirmedError as error:
        if not (yes or is_confirmed(str(error))):
            raise EvalError(f"{error} Add --yes.") from error
        return queue_conformance_probes(models, why=why, confirmed_requests=error.max_paid_requests)


def _run_until_done(probe_id: int, interrupts: InterruptCounter) -> bool:
    """Run a probe, or wait for the worker that runs it, until the end or Ctrl-C; return whether it is finished."""
    while not interrupts.count and Probe.objects.filter(pk=probe_id, state__in=OPEN_STATES).exists():
        requeue_lost_probes()
        run_probe(probe_id, lambda: bool(interrupts.count), on_finished=decide_waiting_methods)
        if Probe.objects.filter(pk=probe_id, state__in=OPEN_STATES).exists():
            interrupts.wait(POLL_SECONDS)
    return Probe.objects.filter(pk=probe_id, state=Probe.State.DONE).exists()
