"""Every method with the same small local model: valid calls, success, seconds and tokens of a trial.

`python -m benchmarks.methods --trials 30`, beside a running `make up` with its local model, launches one run of
scenario `weather` in the published wording, waits for its end, and prints a table. The run and its traces are kept.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from statistics import median

import benchmarks.django_setup  # noqa: F401
from toolbench.lab.metrics.rate import Rate, build_rate
from toolbench.lab.models import Model, Run, RunConfig, Trial
from toolbench.lab.planning.run_request import ConfigChoice, RunRequest
from toolbench.lab.runs.launch import launch
from toolbench.lab.runs.local_demo import EXAMPLE_SET, OWN_SERVICE, TOOLS_SERVICE

METHOD_LABELS = {
    ("native", OWN_SERVICE, ""): "native, the model's own template",
    ("native", TOOLS_SERVICE, ""): "native, Toolbench's tool template",
    ("native", TOOLS_SERVICE, EXAMPLE_SET): "native + examples",
    ("text_json", TOOLS_SERVICE, ""): "prompt (text JSON)",
    ("text_json", TOOLS_SERVICE, EXAMPLE_SET): "text JSON + examples",
    ("template", TOOLS_SERVICE, ""): "template",
    ("template", TOOLS_SERVICE, EXAMPLE_SET): "template + examples",
    ("constrained", TOOLS_SERVICE, ""): "constrained",
    ("constrained", TOOLS_SERVICE, EXAMPLE_SET): "constrained + examples",
}
TABLE_HEAD = ("method", "valid", "right", "median trial s", "tokens read", "tokens written")
POLL_SECONDS = 20.0


def build_request(trials: int) -> RunRequest:
    """Return a request with a configuration for each method."""
    model_ids = {name: Model.objects.get(provider__service=name).pk for name in (OWN_SERVICE, TOOLS_SERVICE)}
    configs = tuple(
        ConfigChoice(model=model_ids[service], method=method, examples=examples)
        for method, service, examples in METHOD_LABELS
    )
    return RunRequest(title="The local model, every method", configs=configs, scenarios=("weather",), trials=trials)


def wait_for_end(run: Run) -> None:
    """Wait until every trial is done; print the number of the others every 20 s."""
    open_trials = Trial.objects.filter(run=run).exclude(state=Trial.State.DONE)
    while count := open_trials.count():
        print(f"{count} trials are not done", flush=True)
        time.sleep(POLL_SECONDS)


def iter_table_rows(run: Run) -> Iterator[Sequence[str]]:
    """Yield a row for each configuration; *valid* counts trials with a call that fits the tool's schema."""
    for config in RunConfig.objects.filter(run=run).order_by("position"):
        done = list(Trial.objects.filter(config=config, outcome__in=[Trial.Outcome.PASS, Trial.Outcome.FAIL]))
        yield (
            METHOD_LABELS[config.method, config.service, config.examples],
            _render_rate(build_rate(sum(trial.valid_calls > 0 for trial in done), len(done))),
            _render_rate(build_rate(sum(bool(trial.task_pass) for trial in done), len(done))),
            f"{median(trial.duration_ms or 0 for trial in done) / 1000:.1f}",
            f"{median(trial.input_tokens for trial in done):.0f}",
            f"{median(trial.output_tokens for trial in done):.0f}",
        )


def _render_rate(rate: Rate) -> str:
    return f"{rate.k}/{rate.n} · {rate.percent} % [{rate.low_percent}–{rate.high_percent}]"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.methods", description=__doc__)
    parser.add_argument("--trials", type=int, default=30, help="of each method (default 30)")
    run = launch(build_request(parser.parse_args().trials))
    wait_for_end(run)
    for row in (TABLE_HEAD, ("---",) * len(TABLE_HEAD), *iter_table_rows(run)):
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
