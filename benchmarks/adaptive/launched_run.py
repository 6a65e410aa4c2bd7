"""A launched run that lasts longer than the benchmark, at a provider with adaptive concurrency.

`python -m benchmarks.adaptive.launched_run BASE_URL TRIALS` prints a line when the first trial is claimed. When it has
read a line, it prints the points of the provider's chart as JSON and ends.
"""

import json
import sys
import time

import benchmarks.django_setup  # noqa: F401
from benchmarks.stored_run import launch_run
from toolbench.lab.models import PacePoint, Trial

MAX_CONCURRENCY = 200
POLL_SECONDS = 0.1


def main() -> None:
    base_url, trials = sys.argv[1], int(sys.argv[2])
    run = launch_run(base_url, trials, MAX_CONCURRENCY, adaptive=True, max_attempts=6)
    while not Trial.objects.filter(run=run, started_at__isnull=False).exists():
        time.sleep(POLL_SECONDS)
    print("started", flush=True)
    sys.stdin.readline()
    provider = run.configs.get().provider
    figures = ("at", "concurrency", "in_flight", "answers", "rejections", "requests_per_minute")
    print(json.dumps(list(PacePoint.objects.filter(provider=provider).values_list(*figures)), default=str))


if __name__ == "__main__":
    main()
