"""Process that launches a run in the database of the environment and waits until it is finished.

`python -m benchmarks.stored_run BASE_URL TRIALS CONCURRENCY [MODELS]` prints {"seconds": …}, from the first claim to
the last end. Each of MODELS cells gets the same number of trials; a remainder is left out. Afterwards it checks the
run: it fails if a trial did not pass or if a byte that was sent or received is not stored.
"""

import json
import sys
import time
import uuid
from typing import Any

from django.db.models import Max, Min, Sum
from django.db.models.functions import Length

import benchmarks.django_setup  # noqa: F401
from benchmarks.benchmark_trial import MODEL_NAME, SCENARIO, STRATEGY, build_trial, list_request_bodies
from benchmarks.stack import KEY_NAME
from benchmarks.trial_answers import TRIAL_ANSWERS
from toolbench.lab.models import Model, Provider, Run, Step, StepBody, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.runs.launch import launch

STEPS_PER_TRIAL = 5
POLL_SECONDS = 0.5


def launch_run(base_url: str, trials: int, concurrency: int, *, models: int = 1, **settings: Any) -> Run:
    """Launch a run of the benchmark's trial at a new provider.

    Args:
        base_url: address of the provider.
        trials: number of trials.
        concurrency: concurrency limit of the provider.
        models: number of models, and so of cells.
        settings: further columns of the provider.
    """
    provider = Provider.objects.create(
        name=f"bench {uuid.uuid4().hex[:12]}",
        base_url=base_url,
        concurrency=concurrency,
        key_source=Provider.KeySource.ENVIRONMENT,
        key_env=KEY_NAME,
        **settings,
    )
    names = (MODEL_NAME, *(f"{MODEL_NAME[:-2]}{number:02}" for number in range(1, models)))
    model_ids = tuple(Model.objects.create(provider=provider, name=name, canonical=name).pk for name in names)
    request = RunRequest(
        models=model_ids, strategies=(STRATEGY,), scenarios=(SCENARIO,), trials=trials // models, seed=1
    )
    return launch(request, confirmed_requests=sys.maxsize)


def wait_for_end(run: Run) -> float:
    """Wait until the run has ended; return the seconds from the first claim to the last end."""
    open_trials = Trial.objects.filter(run=run).exclude(state=Trial.State.DONE)
    while open_trials.exists():
        time.sleep(POLL_SECONDS)
    times = Trial.objects.filter(run=run).aggregate(began=Min("started_at"), ended=Max("finished_at"))
    seconds: float = (times["ended"] - times["began"]).total_seconds()
    return seconds


def check_run(run: Run, trials: int) -> None:
    """Check that every trial passed and that every byte that was sent and received is stored.

    Raises:
        SystemExit: a trial, a step or a byte is missing.
    """
    passed = Trial.objects.filter(run=run, outcome=Trial.Outcome.PASS, execution=1).count()
    steps = Step.objects.filter(trial__run=run)
    stored = StepBody.objects.filter(step__in=steps.filter(kind=Step.Kind.EXCHANGE)).aggregate(
        sent=Sum(Length("request")), answered=Sum(Length("response"))
    )
    expected = {
        "sent": trials * sum(map(len, list_request_bodies(build_trial()))),
        "answered": trials * sum(map(len, TRIAL_ANSWERS)),
    }
    if (passed, steps.count(), stored) != (trials, trials * STEPS_PER_TRIAL, expected):
        raise SystemExit(f"{passed} of {trials} passed, {steps.count()} steps, bytes {stored}, expected {expected}")


def main() -> None:
    base_url, (trials, concurrency, models) = sys.argv[1], (int(text) for text in (*sys.argv[2:], "1")[:3])
    run = launch_run(base_url, trials, concurrency, models=models)
    print(json.dumps({"seconds": wait_for_end(run)}), flush=True)
    check_run(run, trials // models * models)


if __name__ == "__main__":
    main()
