"""Process that launches runs and checks invariants on the database of the environment.

`python -m benchmarks.chaos.lab_commands` reads one JSON object per line, {"verb": …, other arguments}, and answers each
with one line: {"answer": …}, or {"error": …} if the database is unavailable. It ends with its input.
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from django.db import connection

import benchmarks.django_setup  # noqa: F401
from benchmarks.chaos.invariants import WatchedRun, count_cells, find_violations, install_end_trigger
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Model, Provider, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS

SCENARIO = "happy_path"
CONCURRENCY = 4
_KEY = "sk-chaos-0123456789abcdef"  # no real key; a worker can read it only with the key file
POISONED_READ_SECONDS = 2.0
POISONED_DEADLINE_SECONDS = 8.0


def launch_counted(base_url: str, trials: int, cap: int | None, *, poisoned: bool, stream: bool) -> int:
    """Launch a run at the provider that counts requests; return its id."""
    name = base_url.rpartition("/")[2]
    provider = Provider.objects.create(
        name=name,
        base_url=base_url,
        concurrency=CONCURRENCY,
        max_attempts=2,
        key_source=Provider.KeySource.STORED,
        key_encrypted=encrypt(_KEY),
    )
    model = Model.objects.create(provider=provider, name=name, canonical=name)
    request = RunRequest(
        title=name,
        models=(model.pk,),
        scenarios=(SCENARIO,),
        streams=(stream,),
        trials=trials,
        request_cap=cap,
        seed=1,
        read_seconds=POISONED_READ_SECONDS if poisoned else None,
        deadline_seconds=POISONED_DEADLINE_SECONDS if poisoned else None,
    )
    return launch(request, confirmed_requests=sys.maxsize).pk


def launch_simulated(persona: str, trials: int, *, until: bool) -> int:
    """Launch a run of a simulated model, with sequential stopping if `until` is set; return its id."""
    model = Model.objects.get(provider__kind=Provider.Kind.SIMULATED, provider__wire=Provider.Wire.CHAT, name=persona)
    request = RunRequest(
        title=persona,
        models=(model.pk,),
        scenarios=(SCENARIO,),
        trials=trials,
        until=StoppingRule(target=50).to_json() if until else {},
        seed=1,
    )
    return launch(request, confirmed_requests=sys.maxsize).pk


def check_runs(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the violations in these runs, the number of their cells, and how each run ended."""
    watched = [WatchedRun(**run) for run in runs]
    ids = [run.run_id for run in watched]
    return {
        "violations": [asdict(violation) for violation in find_violations(watched)],
        "cells": count_cells(ids),
        "ends": {run_id: _read_end(run_id) for run_id in ids},
    }


def _read_end(run_id: int) -> dict[str, Any]:
    run = Run.objects.get(pk=run_id)
    outcomes = [outcome or state for state, outcome in run.trials.values_list("state", "outcome")]
    return {
        "state": run.state,
        "reserved": run.requests_reserved,
        "outcomes": {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))},
        "executions_lost": run.trials.filter(execution__gt=1).count(),
    }


_VERB_BY_NAME: Mapping[str, Callable[..., Any]] = {
    "prepare": install_end_trigger,
    "launch_counted": launch_counted,
    "launch_simulated": launch_simulated,
    "check": check_runs,
}


def answer_line(line: str) -> dict[str, Any]:
    """Run the request of a line and return the answer."""
    request = json.loads(line)
    try:
        return {"answer": _VERB_BY_NAME[request.pop("verb")](**request)}
    except UNAVAILABLE_ERRORS as error:
        connection.close()
        return {"error": str(error)}


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer_line(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
