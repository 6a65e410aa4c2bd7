"""Lines that `manage.py eval` prints about a plan and about the cells of a run."""

from collections import defaultdict
from collections.abc import Iterator

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import Cell, Run
from toolbench.lab.planning.run_request import Plan
from toolbench.lab.runs.sequential_stopping import DECISION_TEXTS

_MAX_SKIPPED_SHOWN = 5


def render_plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines about a plan: its size, its requests, and what is not applicable or left out.

    A pair in these lines is a model with a sampling profile.
    """
    pairs = {(config.model, config.profile) for config in plan.configs}
    yield (
        f"{_format_count(len(pairs), 'pair')} of model and profile, "
        f"{_format_count(len(plan.configs), 'configuration')}, "
        f"{_format_count(len(plan.cells), 'cell')}, {_format_trials(plan)}"
    )
    yield f"{plan.least_requests:,} to {plan.most_requests:,} requests"
    for name, most in plan.paid_requests.items():
        yield f"up to {most:,} of them to {name}, which may have to be paid for"
    if off := sum(not cell.applicable for cell in plan.cells):
        yield f"{_format_count(off, 'cell')} not applicable: tools are off there, and nothing is sent"
    for skipped in plan.skipped[:_MAX_SKIPPED_SHOWN]:
        yield f"left out: {skipped.what}. {skipped.why}"
    if len(plan.skipped) > _MAX_SKIPPED_SHOWN:
        yield f"left out: {len(plan.skipped) - _MAX_SKIPPED_SHOWN} more"


def render_run_lines(run: Run, *, each_cell: bool) -> Iterator[str]:
    """Yield both success rates of every task pack and of the controls, which are never pooled.

    `each_cell` adds a line for every cell.
    """
    cells = tuple(run.cells.select_related("config"))
    packs: dict[str, list[Cell]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.control, cell.position)):
        packs["control" if cell.control else cell.scenario_group].append(cell)
    for name, scenarios in packs.items():
        sums = tally_cells(scenarios)
        yield f"{name}: {render_rates(sums.answered_success(), sums.delivered())}"
        if sums.has_retries:
            yield f"  {_describe_retries(sums)}"
    for cell in cells if each_cell else ():
        sums = tally_cells([cell])
        rates = render_rates(sums.answered_success(), sums.delivered())
        yield f"  {build_cell_name(cell)}: {rates}{_describe_decision(cell)}"


def _describe_retries(sums: Tally) -> str:
    if not sums.retries_known:
        return "answers of 429 and 5xx: unknown"
    return (
        f"{_format_count(sums.answers_429, 'answer')} of 429, {sums.answers_5xx:,} of 5xx, "
        f"{sums.retries:,} sent again after {sums.backoff_ms / 1000:.1f} s of back-off"
    )


def _describe_decision(cell: Cell) -> str:
    return "" if cell.error is None else f"; {DECISION_TEXTS.get(cell.decided, 'open')}"


def build_cell_name(cell: Cell) -> str:
    """Return the name of a cell: model, settings that are not blank, and scenario."""
    config = cell.config
    streamed = "streamed" if config.stream else ""
    settings = (config.profile, config.strategy, config.method, config.examples, streamed)
    parts = (config.model_name, *settings, cell.scenario)
    return " · ".join(part for part in parts if part)


def render_rates(answered: Rate, delivered: Rate) -> str:
    """Return both success rates in words."""
    return f"success given an answer {answered.text}, delivered {delivered.text}"


def _format_trials(plan: Plan) -> str:
    fewest = "" if plan.least_trials == plan.trials else f"{plan.least_trials:,} to "
    return fewest + _format_count(plan.trials, "trial")


def _format_count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
