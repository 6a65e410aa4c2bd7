"""`manage.py eval`: run trials from the command line.

The command launches a run as the page New run does. Worker sessions in the process of the command run its trials. With
`--server`, another installation launches the run and runs its trials.
"""

import os
import sys
from argparse import BooleanOptionalAction
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from toolbench.client import ConflictError, ToolbenchClient
from toolbench.installation import build_command
from toolbench.lab.interchange.report.write import ReportError, check_empty_folder, write_report
from toolbench.lab.management.confirmation import is_confirmed
from toolbench.lab.management.eval.baseline import compare_with_baseline_run
from toolbench.lab.management.eval.gate_files import GateResults, render_junit, render_markdown
from toolbench.lab.management.eval.names import EvalError
from toolbench.lab.management.eval.options import (
    OPTIONS,
    VARIABLE_PREFIX,
    EvalOptions,
    OptionError,
    list_unused_variables,
    parse_options,
)
from toolbench.lab.management.eval.output import render_plan_lines, render_run_lines
from toolbench.lab.management.eval.progress import count_interrupts, show_progress_bar
from toolbench.lab.management.eval.providers import check_reachable, clear_paused_reason, update_openrouter
from toolbench.lab.management.eval.remote import (
    check_remote_options,
    plan_remotely,
    resume_remotely,
    use_remote_baseline_seed,
    wait_for_results,
)
from toolbench.lab.management.eval.request import EvalRequest, build_eval_request, build_run_limits
from toolbench.lab.management.eval.results import list_cell_results
from toolbench.lab.management.eval.workers import EvalSessions
from toolbench.lab.management.known_names import REFUSED_EXIT_CODE
from toolbench.lab.management.remote_server import add_server_arguments, open_server
from toolbench.lab.metrics.provider_budget import list_provider_budgets
from toolbench.lab.models import Model, Run
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.planning.expansion import build_plan
from toolbench.lab.planning.run_request import LaunchError
from toolbench.lab.runs import control, limits
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.launch import launch

BELOW_EXIT_CODE, UNFINISHED_EXIT_CODE = 1, 3
POLL_SECONDS = 0.3
SILENT_VERBOSITY, DETAILED_VERBOSITY = 0, 2


class Command(BaseCommand):
    """Command that plans, launches or resumes a run, waits for its end and prints the results."""

    help = (
        "Run trials from the command line. Exit codes: 0 finished; 1 a cell is below --fail-under or worse than "
        "--baseline; 2 the request is refused; 3 not finished or a file is not written, finished trials are kept."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Define a flag for every option in `OPTIONS`, then --yes, --dry-run, --resume, --server and --token."""
        for option in OPTIONS.values():
            help_text = f"{option.help} ({VARIABLE_PREFIX}{option.variable})" if option.variable else option.help
            if option.kind.is_switch:
                parser.add_argument(option.flag, action=BooleanOptionalAction, default=None, help=help_text)
            else:
                parser.add_argument(option.flag, metavar=option.kind.metavar, default=None, help=help_text)
        parser.add_argument("--yes", action="store_true", help="send paid requests without asking")
        parser.add_argument("--dry-run", action="store_true", help="print the plan and send nothing")
        parser.add_argument("--resume", type=int, metavar="RUN", help="continue a run that is not finished")
        add_server_arguments(parser)

    def handle(self, *, yes: bool, dry_run: bool, resume: int | None, **arguments: Any) -> None:
        """Launch or resume a run, run its trials and print the results; with `dry_run`, only print the plan.

        Raises:
            CommandError: the request is refused, the run is not finished, a cell is below `--fail-under` or worse than
                the baseline, or a file cannot be written.
        """
        self.verbosity = _resolve_verbosity(arguments["verbosity"])
        try:
            values = {name: arguments[name] for name in OPTIONS if arguments.get(name) is not None}
            options = parse_options(values, os.environ)
            if dry_run and resume is not None:
                raise EvalError("Leave --dry-run out: with --resume there is no plan to print.")
            if arguments.get("server"):
                with open_server(arguments["server"], arguments.get("token") or "") as client:
                    return self._run_remotely(client, options, resume=resume, yes=yes, dry_run=dry_run)
            if options.key:
                raise EvalError("Leave --key out: it works only with --server.")
            options = _use_baseline_seed(options)
            if dry_run:
                return self._print_plan(build_eval_request(options))
            if options.out:
                check_empty_folder(Path(options.out))
            run = self._start(options, resume=resume, yes=yes)
        except (OptionError, EvalError, LaunchError, ReportError, RunActionError) as error:
            raise CommandError(str(error), returncode=REFUSED_EXIT_CODE) from error
        self._run_sessions(run)
        return self._report_result(run, options)

    def _run_remotely(
        self, client: ToolbenchClient, options: EvalOptions, *, resume: int | None, yes: bool, dry_run: bool
    ) -> None:
        """Launch or resume a run on another installation, wait for its end and check the gates.

        With `dry_run`, only print the plan.

        Raises:
            CommandError: the run is not finished, a gate fails, or a file cannot be written.
            EvalError: an option is not accepted, or paid requests are not confirmed.
            ToolbenchError: the installation refused a request.
        """
        check_remote_options(options, resumes=resume is not None)
        options = use_remote_baseline_seed(client, options)
        if resume is not None:
            run_id = resume
            try:
                resume_remotely(client, options, run_id)
            except ConflictError as error:
                if not error.agreed:
                    raise
                _check_confirmed(error.agreed, yes=yes)
                resume_remotely(client, options, run_id, agreed=error.agreed)
        else:
            planned = plan_remotely(client, options)
            self._print(*planned.lines)
            if dry_run:
                return
            _check_confirmed(planned.plan.agreed, yes=yes)
            run_id = client.launch(agreed=planned.plan.agreed, idempotency_key=options.key, **planned.body).id
        self._print(f"Run {run_id}: {client.transport.http.base_url}")
        results = wait_for_results(client, run_id, options)
        self._print(*(f"{cell.name}: {cell.text}" for cell in results.cells))
        self._check_gates(results, options)

    def _start(self, options: EvalOptions, *, resume: int | None, yes: bool) -> Run:
        """Launch or resume a run and return it.

        The providers of OpenRouter are updated in the same transaction, so an error leaves them unchanged.

        Raises:
            EvalError: an option is not accepted, a provider cannot be used, or paid requests are not confirmed.
            LaunchError: the request cannot be planned.
            RunActionError: the run cannot be resumed.
        """
        confirmed_requests = 0
        while True:
            try:
                with transaction.atomic():
                    notes = update_openrouter(os.environ, options)
                    source = _build_checked_request(options) if resume is None else _get_unfinished_run(resume)
                    if not confirmed_requests:  # at the first attempt, before the question
                        self._print(*list_unused_variables(os.environ), *_list_plan_lines(source))
                    if isinstance(source, Run):
                        run = _resume_run(source, options, confirmed_requests)
                    else:
                        run = launch(source.request, confirmed_requests=confirmed_requests)
                self._print(*notes)
                return run
            except PaidRequestsUnconfirmedError as error:
                if not (yes or is_confirmed(str(error))):
                    raise EvalError(f"{error} Add --yes.") from error
                confirmed_requests = error.max_paid_requests

    def _run_sessions(self, run: Run) -> None:
        """Run worker sessions until no session is running or can be started and no trial of the run is running.

        The first Ctrl-C pauses the run and lets trials in flight finish. The second stops and requeues them.

        Raises:
            CommandError: a session ended with an internal error.
        """
        providers = tuple({model.provider_id: model.provider for model in _get_models(run)}.values())
        clear_paused_reason(providers)
        sessions = EvalSessions(run.pk)
        progress_bar = show_progress_bar(run, sys.stderr, silent=self.verbosity == SILENT_VERBOSITY)
        with count_interrupts() as interrupts, progress_bar as bar, sessions:
            while sessions.start_sessions():
                bar.update()
                interrupts.wait(POLL_SECONDS)
                if interrupts.count:
                    _pause_run(run)
                if interrupts.count > 1:
                    sessions.stop()
        if sessions.failure is not None:
            advice = f"Finished trials are kept. Continue with `{build_command('eval', f'--resume {run.pk}')}`."
            message = f"Toolbench itself failed: {sessions.failure!r}. {advice}"
            raise CommandError(message, returncode=UNFINISHED_EXIT_CODE)

    def _report_result(self, run: Run, options: EvalOptions) -> None:
        """Print the results, write the files and check the gates.

        Raises:
            CommandError: the run is not finished, a cell is below `--fail-under` or worse than the baseline, or a file
                cannot be written.
        """
        run.refresh_from_db()
        self._print(*render_run_lines(run, each_cell=self.verbosity >= DETAILED_VERBOSITY))
        unwritten = _try_to_write(options.out, lambda folder: self._write_report(run, folder))
        unfinished = _describe_unfinished(run) if run.state != Run.State.FINISHED else ""
        gate = compare_with_baseline_run(run, options.baseline) if options.baseline is not None else None
        cells = list_cell_results(run)
        self._check_gates(GateResults(f"Run {run.pk}", cells, options.fail_under, gate, unfinished), options, unwritten)

    def _write_report(self, run: Run, folder: Path) -> None:
        self._print(f"{len(write_report(run.pk, folder))} files in {folder}")

    def _check_gates(self, results: GateResults, options: EvalOptions, unwritten: tuple[str, ...] = ()) -> None:
        """Print the comparison with the baseline, write the files for CI and raise an error if a gate fails.

        The gates are `--fail-under` and `--baseline`.

        Args:
            results: the cells and the gates.
            options: all options of the command.
            unwritten: a sentence for each file or folder that could not be written before.

        Raises:
            CommandError: the run is not finished, a gate fails, or a file cannot be written.
        """
        if gate := results.gate:
            self._print(*(f"against run {gate.baseline_id}, {cell.name}: {cell.text}" for cell in gate.cells))
        unwritten = (*unwritten, *_write_gate_files(results, options))
        reasons = [*unwritten, results.unfinished or results.failure]
        if message := "\n".join(filter(None, reasons)):
            has_failed_gate = results.failure and not results.unfinished
            raise CommandError(message, returncode=BELOW_EXIT_CODE if has_failed_gate else UNFINISHED_EXIT_CODE)

    def _print_plan(self, eval_request: EvalRequest) -> None:
        """Print the plan, even if the command is silent."""
        for line in (*list_unused_variables(os.environ), *_list_plan_lines(eval_request)):
            self.stdout.write(line)

    def _print(self, *lines: str) -> None:
        """Print lines unless the command is silent."""
        for line in lines if self.verbosity > SILENT_VERBOSITY else ():
            self.stdout.write(line)


def _resolve_verbosity(verbosity: int) -> int:
    """Return the verbosity; the case study's environment variable VERBOSE replaces Django's default of 1."""
    variable = os.environ.get("VERBOSE", "")
    return int(variable) if verbosity == 1 and variable in ("0", "1", "2") else verbosity


def _check_confirmed(paid_requests: int, *, yes: bool) -> None:
    """Ask whether paid requests may be sent, unless `paid_requests` is 0 or `yes` is set.

    Raises:
        EvalError: the requests are not confirmed.
    """
    if paid_requests and not (yes or is_confirmed("Some of these requests may cost money. Send them?")):
        raise EvalError(f"Up to {paid_requests:,} requests may cost money. Add --yes.")


def _get_models(run: Run) -> tuple[Model, ...]:
    """Return the models of the run that still exist."""
    return tuple(Model.objects.filter(pk__in=run.configs.values("model")).select_related("provider"))


def _use_baseline_seed(options: EvalOptions) -> EvalOptions:
    """Return the options with the baseline's seed, so that both runs have the same instances, unless a seed is given.

    Raises:
        EvalError: there is no run with the number of `--baseline`.
    """
    if options.baseline is None:
        return options
    baseline = Run.objects.filter(pk=options.baseline, deleted_at=None).first()
    if baseline is None:
        raise EvalError(f"There is no run {options.baseline}: give --baseline the number of a run.")
    return replace(options, seed=baseline.seed) if options.seed is None else options


def _write_gate_files(results: GateResults, options: EvalOptions) -> tuple[str, ...]:
    """Write the files of `--junit` and `--markdown`; return a sentence for each that could not be written."""
    return (
        *_try_to_write(options.junit, lambda path: path.write_text(render_junit(results), encoding="utf-8")),
        *_try_to_write(options.markdown, lambda path: path.write_text(render_markdown(results), encoding="utf-8")),
    )


def _try_to_write(path: str, write: Callable[[Path], object]) -> tuple[str, ...]:
    """Call `write` unless `path` is empty.

    Returns:
        A sentence about the error if the file or folder was not written; else ().
    """
    try:
        if path:
            write(Path(path))
    except (OSError, ReportError) as error:
        return (f"{path} was not written: {str(error).rstrip('.')}. The results of the run are kept.",)
    return ()


def _build_checked_request(options: EvalOptions) -> EvalRequest:
    """Build the request and check that it can be launched.

    Raises:
        EvalError: an option is not accepted, or a provider cannot be used.
        LaunchError: the request cannot be planned.
    """
    eval_request = build_eval_request(options)
    check_reachable(eval_request.models)
    build_plan(eval_request.request)
    return eval_request


def _list_plan_lines(source: EvalRequest | Run) -> tuple[str, ...]:
    """Return the lines about the plan of a request; () for a run that is resumed."""
    return () if isinstance(source, Run) else tuple(render_plan_lines(build_plan(source.request)))


def _get_unfinished_run(run_id: int) -> Run:
    """Return the run to resume.

    Raises:
        EvalError: there is no such run, it is neither running nor paused, or a provider cannot be used.
    """
    run = Run.objects.filter(pk=run_id, deleted_at=None).first()
    if run is None:
        raise EvalError(f"There is no run {run_id}.")
    if run.state not in (Run.State.RUNNING, Run.State.PAUSED):
        raise EvalError(f"Run {run_id} is {run.get_state_display()}, so it cannot be resumed.")
    check_reachable(_get_models(run))
    return run


def _resume_run(run: Run, options: EvalOptions, confirmed_requests: int) -> Run:
    """Set the limits, timeouts and concurrency limit in the options for a run, and resume it if it is paused.

    Raises:
        RunActionError: the limits cannot be changed or the run cannot be resumed.
        PaidRequestsUnconfirmedError: under a higher limit, more paid requests may be sent than were confirmed.
    """
    if options.request_cap or options.token_cap:
        limits.set_limits(
            run.pk,
            request_cap=options.request_cap or run.request_cap,
            token_cap=options.token_cap or run.token_cap,
            confirmed_requests=confirmed_requests,
        )
    if run_limits := build_run_limits(options):
        Run.objects.filter(pk=run.pk).update(**run_limits)
    if run.state == Run.State.PAUSED:
        control.resume_run(run.pk)
    return run


def _pause_run(run: Run) -> None:
    if Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).exists():
        control.pause_run(run.pk, "Interrupted at the command line.")


def _describe_unfinished(run: Run) -> str:
    """Describe why the run is not finished and how to continue it."""
    models = _get_models(run)
    reason_by_provider = {model.provider.name: model.provider.paused_reason for model in models}
    budgets = list_provider_budgets(model.provider_id for model in models)
    paused_reasons = [f"{name}: {reason}" for name, reason in reason_by_provider.items() if reason]
    provider_reason = " ".join([*paused_reasons, *(budget.sentence for budget in budgets if budget.is_reached)])
    limit_flag = ""
    if run.request_cap is not None and run.requests_reserved >= run.request_cap:
        limit_flag = " --request-cap N"
    elif run.token_cap and run.tokens_used >= run.token_cap:
        limit_flag = " --token-cap N"
    command = build_command("eval", f"--resume {run.pk}{limit_flag}")
    advice = f"Continue it with `{command}`, or cancel it on its page."
    is_cancelled = run.state in (Run.State.CANCELLING, Run.State.CANCELLED)
    parts = (
        f"Run {run.pk} is {run.get_state_display()}.",
        run.stopped_reason or provider_reason,
        "" if is_cancelled else advice,
    )
    return " ".join(filter(None, parts))
