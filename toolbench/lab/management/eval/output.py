"""What `manage.py eval` says of a plan and of a run's cells, line by line."""

from collections import defaultdict
from collections.abc import Iterator

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, tally
from toolbench.lab.models import Cell, Run
from toolbench.lab.planning.run_request import Plan
from toolbench.lab.runs.sequential_stopping import DECIDED

_MOST_LEFT_OUT = 5


def plan_lines(plan: Plan) -> Iterator[str]:
    """Pairs are models with sampling profiles."""
    pairs = {(config.model, config.profile) for config in plan.configs}
    yield (
        f"{_many(len(pairs), 'pair')} of model and profile, {_many(len(plan.configs), 'configuration')}, "
        f"{_many(len(plan.cells), 'cell')}, {_trials(plan)}"
    )
    yield f"{plan.least_requests:,} to {plan.most_requests:,} requests"
    for name, most in plan.paid_requests.items():
        yield f"up to {most:,} of them to {name}, which may have to be paid for"
    if off := sum(not cell.applicable for cell in plan.cells):
        yield f"{_many(off, 'cell')} not applicable: tools are off there, and nothing is sent"
    for skipped in plan.skipped[:_MOST_LEFT_OUT]:
        yield f"left out: {skipped.what}. {skipped.why}"
    if len(plan.skipped) > _MOST_LEFT_OUT:
        yield f"left out: {len(plan.skipped) - _MOST_LEFT_OUT} more"


def run_lines(run: Run, *, each_cell: bool) -> Iterator[str]:
    """Both rates of every pack and of the controls, never of two packs together; the cells below them where they are
    wanted."""
    cells = tuple(run.cells.select_related("config"))
    packs: dict[str, list[Cell]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.control, cell.position)):
        packs["control" if cell.control else cell.scenario_group].append(cell)
    for name, some in packs.items():
        sums = tally(some)
        yield f"{name}: {rates_text(sums.given_an_answer(), sums.delivered())}"
        if sums.had_retries:
            yield f"  {_retries(sums)}"
    for cell in cells if each_cell else ():
        sums = tally([cell])
        yield f"  {cell_name(cell)}: {rates_text(sums.given_an_answer(), sums.delivered())}{_decided(cell)}"


def _retries(sums: Tally) -> str:
    if not sums.retries_known:
        return "answers of 429 and 5xx: unknown"
    return (
        f"{_many(sums.answers_429, 'answer')} of 429, {sums.answers_5xx:,} of 5xx, "
        f"{sums.retries:,} sent again after {sums.backoff_ms / 1000:.1f} s of back-off"
    )


def _decided(cell: Cell) -> str:
    return "" if cell.error is None else f"; {DECIDED.get(cell.decided, 'open')}"


def cell_name(cell: Cell) -> str:
    config = cell.config
    streamed = "streamed" if config.stream else ""
    asked = (config.profile, config.strategy, config.method, config.examples, streamed)
    parts = (config.model_name, *asked, cell.scenario)
    return " · ".join(part for part in parts if part)


def rates_text(answered: Rate, delivered: Rate) -> str:
    return f"success given an answer {answered.text}, delivered {delivered.text}"


def _trials(plan: Plan) -> str:
    fewest = "" if plan.least_trials == plan.trials else f"{plan.least_trials:,} to "
    return fewest + _many(plan.trials, "trial")


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
