"""`manage.py remote`: launch, control and read runs of another installation through its API."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from toolbench.client import ToolbenchClient, ToolbenchError, UnreachableError
from toolbench.installation import build_command
from toolbench.lab.management.remote_server import TOKEN_VARIABLE


class Command(BaseCommand):
    """Command that executes one action on another installation and prints the result as JSON lines."""

    help = f"Work with the runs of another installation. The token is read from {TOKEN_VARIABLE}."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Define the arguments."""
        parser.add_argument("action", choices=sorted(ACTIONS))
        parser.add_argument("run", type=int, nargs="?", help="number of the run, if the action needs one")
        parser.add_argument(
            "--server", required=True, help="address of the installation, such as https://bench.example.org"
        )
        parser.add_argument("--json", default="{}", help="for plan and launch: the plan as a JSON object (docs/api.md)")
        parser.add_argument("--key", default="", help="idempotency key of a launch")

    def handle(self, *args: Any, **options: Any) -> None:
        """Execute the action and print each document of its result as soon as it is read.

        Raises:
            CommandError: the token, the number of the run or the JSON is missing or wrong, or the server did not answer
                or refused the request.
        """
        token = os.environ.get(TOKEN_VARIABLE, "")
        if not token:
            raise CommandError(f"Set {TOKEN_VARIABLE} to a token. Create one on the page Tokens of the installation.")
        if options["action"] in RUN_ACTIONS and options["run"] is None:
            raise CommandError(f"Add the number of the run: {build_command('remote', options['action'])} 12")
        try:
            with ToolbenchClient(options["server"], token) as client:
                for document in ACTIONS[options["action"]](client, options):
                    self.stdout.write(json.dumps(document, default=str))
        except (ToolbenchError, UnreachableError, ValueError) as error:
            raise CommandError(str(error)) from error


def _iter_runs(client: ToolbenchClient, options: Mapping[str, Any]) -> Iterator[Any]:
    return map(asdict, client.iter_runs())


def _plan_run(client: ToolbenchClient, options: Mapping[str, Any]) -> list[Any]:
    return [asdict(client.plan(**_read_plan(options)))]


def _launch_run(client: ToolbenchClient, options: Mapping[str, Any]) -> list[Any]:
    return [asdict(client.launch(**{"idempotency_key": options["key"]} | _read_plan(options)))]


def _iter_trials(client: ToolbenchClient, options: Mapping[str, Any]) -> Iterator[Any]:
    return map(asdict, client.iter_trials(run=options["run"]))


def _read_plan(options: Mapping[str, Any]) -> dict[str, Any]:
    """Parse the option --json.

    Raises:
        ValueError: the option is not a JSON object.
    """
    plan = json.loads(options["json"])
    if not isinstance(plan, dict):
        raise ValueError("Give --json as an object, in braces.")
    return plan


RUN_ACTIONS: Mapping[str, Callable[[ToolbenchClient, Mapping[str, Any]], Iterable[Any]]] = {
    "show": lambda client, options: [asdict(client.get_run(options["run"]))],
    "wait": lambda client, options: [asdict(client.wait_for_run(options["run"]))],
    "pause": lambda client, options: [asdict(client.pause(options["run"]))],
    "resume": lambda client, options: [asdict(client.resume(options["run"]))],
    "cancel": lambda client, options: [asdict(client.cancel(options["run"]))],
    "trials": _iter_trials,
}
ACTIONS: Mapping[str, Callable[[ToolbenchClient, Mapping[str, Any]], Iterable[Any]]] = {
    "runs": _iter_runs,
    "plan": _plan_run,
    "launch": _launch_run,
    **RUN_ACTIONS,
}
