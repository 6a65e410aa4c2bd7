"""Lines that `manage.py eval` prints about a plan and about the success rates of a run."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.tally import Tally, tally_cells
from toolbench.lab.models import Cell, Run
from toolbench.lab.planning.run_request import Plan
from toolbench.lab.runs.sequential_stopping import DECISION_TEXTS

_MAX_SKIPPED_SHOWN = 5


def render_plan_lines(plan: Plan) -> Iterator[str]:
    """Yield the lines about a plan: its size, its requests, shared models, and what is not applicable or left out."""
    model_profiles = {(config.model, config.profile) for config in plan.configs}
    yield (
        f"{_format_count(len(model_profiles), 'pair')} of model and profile, "
        f"{_format_count(len(plan.configs), 'configuration')}, "
        f"{_format_count(len(plan.cells), 'cell')}, {_format_trials(plan)}"
    )
    yield f"{plan.least_requests:,} to {plan.most_requests:,} requests"
    yield from _render_shared_models(plan)
    for name, requests in plan.paid_requests.items():
        yield f"up to {requests:,} of them to {name}, which may charge for them"
    if inapplicable := sum(not cell.applicable for cell in plan.cells):
        yield f"{_format_count(inapplicable, 'cell')} not applicable: tools are disabled, so no request is sent"
    yield from render_skipped_lines([(skipped.what, skipped.why) for skipped in plan.skipped])


def render_skipped_lines(skipped: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yield lines about what a plan leaves out.

    Args:
        skipped: pairs of what is left out and why. The lines name the first _MAX_SKIPPED_SHOWN of them.
    """
    for what, why in skipped[:_MAX_SKIPPED_SHOWN]:
        yield f"left out: {what}. {why}"
    if len(skipped) > _MAX_SKIPPED_SHOWN:
        yield f"left out: {len(skipped) - _MAX_SKIPPED_SHOWN} more"


def _render_shared_models(plan: Plan) -> Iterator[str]:
    """Yield a line for each model name that the plan uses at several providers."""
    providers_by_model: dict[str, dict[str, None]] = defaultdict(dict)
    for config in plan.configs:
        providers_by_model[config.model_name][config.provider_name] = None
    for model, providers in providers_by_model.items():
        if len(providers) > 1:
            yield f"{model} at {' and '.join(providers)}: --provider chooses one of them"


def render_run_lines(run: Run, *, each_cell: bool) -> Iterator[str]:
    """Yield a line with the success rates of each task pack, then of the controls, each with a line about its retries.

    Args:
        run: the run.
        each_cell: whether to add a line for every cell.
    """
    cells = tuple(run.cells.select_related("config"))
    cells_by_pack: dict[str, list[Cell]] = defaultdict(list)
    for cell in sorted(cells, key=lambda cell: (cell.control, cell.position)):
        cells_by_pack["control" if cell.control else cell.scenario_group].append(cell)
    for name, pack_cells in cells_by_pack.items():
        tally = tally_cells(pack_cells)
        yield f"{name}: {render_rates(tally.compute_answered_success(), tally.compute_end_to_end_success())}"
        if tally.shows_retries:
            yield f"  {_describe_retries(tally)}"
    for cell in cells if each_cell else ():
        tally = tally_cells([cell])
        rates = render_rates(tally.compute_answered_success(), tally.compute_end_to_end_success())
        yield f"  {build_cell_name(cell)}: {rates}{_describe_decision(cell)}"


def _describe_retries(tally: Tally) -> str:
    if not tally.retries_known:
        return "answers with status 429 or 5xx: unknown"
    return (
        f"{_format_count(tally.answers_429, 'answer')} with status 429, {tally.answers_5xx:,} with 5xx, "
        f"{_format_count(tally.retries, 'retry', 'retries')} after {tally.backoff_ms / 1000:.1f} s of back-off"
    )


def _describe_decision(cell: Cell) -> str:
    """Return the decision of sequential stopping after "; "; "" for a cell with a fixed number of trials."""
    return "" if cell.error is None else f"; {DECISION_TEXTS.get(cell.decided, 'open')}"


def build_cell_name(cell: Cell) -> str:
    """Return the name of a cell: its model, its settings that are not empty, and its scenario."""
    config = cell.config
    streamed = "streamed" if config.stream else ""
    settings = (config.profile, config.strategy, config.method, config.examples, streamed)
    parts = (config.model_name, *settings, cell.scenario)
    return " · ".join(part for part in parts if part)


def render_rates(answered: Rate, end_to_end: Rate) -> str:
    """Return both success rates as text."""
    return f"answered success {answered.text}, end-to-end success {end_to_end.text}"


def _format_trials(plan: Plan) -> str:
    minimum = "" if plan.least_trials == plan.trials else f"{plan.least_trials:,} to "
    return minimum + _format_count(plan.trials, "trial")


def _format_count(count: int, noun: str, plural: str = "") -> str:
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"
