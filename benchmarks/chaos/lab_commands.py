"""Launches runs and checks invariants on the database of the environment, for as long as the chaos lasts.

`python -m benchmarks.chaos.lab_commands` reads one JSON object a line, {"verb": …, other arguments}, and answers each
with one line: {"answer": …} or {"error": …}."""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from django.db import connection

import benchmarks.django_setup  # noqa: F401
from benchmarks.chaos.invariants import WatchedRun, count_cells, find_violations, install_witness
from toolbench.evals.statistics.stopping import StoppingRule
from toolbench.lab.credentials.keys import encrypt
from toolbench.lab.models import Model, Provider, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.worker.database_thread import UNAVAILABLE_ERRORS

SCENARIO = "happy_path"
CONCURRENCY = 4
_KEY = "sk-chaos-0123456789abcdef"  # of no endpoint; a worker without the key file could not read it
POISONED_READ_SECONDS = 2.0
POISONED_DEADLINE_SECONDS = 8.0


def launch_counted(base_url: str, trials: int, cap: int | None, *, poisoned: bool, stream: bool) -> int:
    """Launch a run at the provider that counts; return its id."""
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
    """Launch a run of a simulated model, for a fixed number of trials or until it is decided; return its id."""
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
    """Return what does not hold of the runs, and what became of each."""
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
    "prepare": install_witness,
    "launch_counted": launch_counted,
    "launch_simulated": launch_simulated,
    "check": check_runs,
}


def answer_line(line: str) -> dict[str, Any]:
    asked = json.loads(line)
    try:
        return {"answer": _VERB_BY_NAME[asked.pop("verb")](**asked)}
    except UNAVAILABLE_ERRORS as error:
        connection.close()
        return {"error": str(error)}


def main() -> None:
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer_line(line)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
