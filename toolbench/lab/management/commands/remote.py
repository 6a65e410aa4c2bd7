"""`manage.py remote`: launch, control and read runs of another installation through its API."""

import json
import os
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from toolbench.client import ToolbenchClient, ToolbenchError, UnreachableError

TOKEN_VARIABLE = "TOOLBENCH_TOKEN"


class Command(BaseCommand):
    """Command that sends one request, or waits for a run, and prints the answer as JSON lines."""

    help = f"Work with the runs of another installation. The token is read from {TOKEN_VARIABLE}."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("action", choices=sorted(ACTIONS))
        parser.add_argument("run", type=int, nargs="?", help="number of the run, where the action needs one")
        parser.add_argument("--server", required=True, help="address of the installation: https://bench.example.org")
        parser.add_argument("--json", default="{}", help="what to launch or plan, as JSON: see docs/api.md")
        parser.add_argument("--key", default="", help="idempotency key of a launch")

    def handle(self, *args: Any, **options: Any) -> None:
        """Execute the action.

        Raises:
            CommandError: the token, the number of the run or the JSON is missing or wrong, or the request was refused.
        """
        token = os.environ.get(TOKEN_VARIABLE, "")
        if not token:
            raise CommandError(f"Put a token into {TOKEN_VARIABLE}: make one on the page Tokens of the installation.")
        if options["action"] in RUN_ACTIONS and options["run"] is None:
            raise CommandError(f"Name the run: manage.py remote {options['action']} 12")
        try:
            with ToolbenchClient(options["server"], token) as client:
                for document in ACTIONS[options["action"]](client, options):
                    self.stdout.write(json.dumps(document, default=str))
        except (ToolbenchError, UnreachableError, ValueError) as error:
            raise CommandError(str(error)) from error


def _list_runs(client: ToolbenchClient, options: Mapping[str, Any]) -> list[Any]:
    return [asdict(row) for row in client.iter_runs()]


def _plan(client: ToolbenchClient, options: Mapping[str, Any]) -> list[Any]:
    return [asdict(client.plan(**_read_plan(options)))]


def _launch(client: ToolbenchClient, options: Mapping[str, Any]) -> list[Any]:
    return [asdict(client.launch(**{"idempotency_key": options["key"]} | _read_plan(options)))]


def _list_trials(client: ToolbenchClient, options: Mapping[str, Any]) -> list[Any]:
    return [asdict(trial) for trial in client.iter_trials(run=options["run"])]


def _read_plan(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of the option.

    Raises:
        ValueError: it is no JSON object.
    """
    plan = json.loads(options["json"])
    if not isinstance(plan, dict):
        raise ValueError("Give --json as an object, in braces.")
    return plan


RUN_ACTIONS: Mapping[str, Callable[[ToolbenchClient, Mapping[str, Any]], list[Any]]] = {
    "show": lambda client, options: [asdict(client.get_run(options["run"]))],
    "wait": lambda client, options: [asdict(client.wait_for_run(options["run"]))],
    "pause": lambda client, options: [asdict(client.pause(options["run"]))],
    "resume": lambda client, options: [asdict(client.resume(options["run"]))],
    "cancel": lambda client, options: [asdict(client.cancel(options["run"]))],
    "trials": _list_trials,
}
ACTIONS: Mapping[str, Callable[[ToolbenchClient, Mapping[str, Any]], list[Any]]] = {
    "runs": _list_runs,
    "plan": _plan,
    "launch": _launch,
    **RUN_ACTIONS,
}
