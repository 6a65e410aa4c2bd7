"""Rendering of `matrix.md` with the seven columns of the case study, columns of Toolbench, and the findings."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from toolbench.evals.statistics import compute_nearest_rank_percentile
from toolbench.evals.statistics.quantile_texts import render_quantile
from toolbench.evals.statistics.rounding import format_rounded
from toolbench.lab.date_texts import render_moment
from toolbench.lab.interchange.report.findings import RunFinding
from toolbench.lab.interchange.report.rates import CellTallies, build_cell_tallies
from toolbench.lab.interchange.report.summary import ConfigReport
from toolbench.lab.metrics.scenario_groups import group_cells
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.times import Times, load_cell_times, merge_times
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.matrix.case_study import CASE_STUDY_COLUMNS, CaseStudyFigures

RETRY_COLUMNS = ("answers of 429", "answers of 5xx", "retries", "back-off, s")
ADDED_COLUMNS = (
    "provider",
    "strategy",
    "fallback",
    "method",
    "examples",
    "overall, answered success",
    "overall, end-to-end success",
    "tools, answered success",
    "tools, end-to-end success",
    "control, answered success",
    "control, end-to-end success",
    "not applicable",
    *RETRY_COLUMNS,
    "tools, p50",
    "tools, p95",
)
_NUMERIC_COLUMNS = {"tool_ok", "tool_ok_rate", "control_ok (chat_only)", "p95_ms", "not applicable", *RETRY_COLUMNS}
SIMULATED_NOTE = (
    "**Simulated.** Simulated models have known faults and success rates: nothing here was measured on a real model."
)
COLUMN_NOTES = (
    "The first seven columns follow the case study: a pass is a pass by its rule, infrastructure errors count as "
    "failures, and p95 is the nearest-rank percentile over all trials, those of controls included.",
    "Answered success leaves out infrastructure errors and trials over the deadline; end-to-end success counts "
    "them as failures.",
    "Brackets hold the percentage and its interval (Wilson 95 % unless marked anytime-valid). Intervals apply to "
    "repeats of these scenarios only.",
    "Answers with status 429 and 5xx, retries and back-off are counted over all executions of all trials.",
    "The last two columns are quantiles of the durations of tool trials with an answer, without the time in the queue: "
    "the value, its distribution-free 95 % bounds (open if there are too few answers for one) and the number of "
    "answers.",
    "A failed control points to the prompt, not to tool calling.",
)
MatrixRow = tuple[ConfigReport, CellTallies, Times]


def render_matrix(
    run: Run, reports: Sequence[ConfigReport], cells: Sequence[Cell], findings: Sequence[RunFinding]
) -> str:
    """Return the content of `matrix.md`, with one table per group of scenarios.

    Rates of different groups are never pooled.
    """
    lines = [f"# {escape_cell(str(run))}", ""]
    if run.simulated:
        lines += [SIMULATED_NOTE, ""]
    lines += [f"Run {run.pk}, {run.get_state_display()}, {render_moment(run.created_at)} UTC.", ""]
    lines += [f"- {note}" for note in COLUMN_NOTES]
    groups, times = group_cells(cells), load_cell_times(cells)
    for group, members in groups.items():
        lines += ["", f"## {escape_cell(group)}"] if len(groups) > 1 else []
        lines += ["", *_render_table(_restrict_to_cells(reports, members, times))]
    if not groups:
        lines += ["", *_render_table(())]
    lines += ["", "## Findings", "", *(f"- {escape_cell(finding.sentence)}" for finding in findings), ""]
    return "\n".join(lines)


def _restrict_to_cells(
    reports: Sequence[ConfigReport], cells: Sequence[Cell], times: Mapping[int, Times]
) -> list[MatrixRow]:
    """Return the configurations with the figures of these cells. Configurations without any of them are left out."""
    scenarios = {cell.scenario for cell in cells}
    return [
        (
            replace(report, rows=[row for row in report.rows if row["scenario"] in scenarios]),
            build_cell_tallies(config_cells),
            merge_times(times[cell.pk] for cell in config_cells if not cell.control),
        )
        for report in reports
        if (config_cells := [cell for cell in cells if cell.config_id == report.config.pk])
    ]


def _render_table(rows: Sequence[MatrixRow]) -> Iterator[str]:
    columns = (*CASE_STUDY_COLUMNS, *ADDED_COLUMNS)
    yield _render_line(columns)
    yield f"|{'|'.join('---:' if name in _NUMERIC_COLUMNS else '---' for name in columns)}|"
    for report, tallies, times in sorted(rows, key=lambda row: (row[0].config.model_name, row[0].config.profile)):
        yield _render_line([*_render_case_study_columns(report), *_render_added_columns(report, tallies, times)])


def _render_case_study_columns(report: ConfigReport) -> list[str]:
    tools, control = report.tool_rows, report.control_rows
    failed = [row for row in tools if not row["ok"]]
    times = [row["elapsed_ms"] for row in report.rows]
    figures = CaseStudyFigures(
        sum(row["ok"] for row in tools),
        len(tools),
        sum(row["ok"] for row in control),
        len(control),
        compute_nearest_rank_percentile(times, 95) if times else None,
        Counter(row["scenario"] for row in failed),
        Counter(row["error_category"] for row in failed),
    )
    passed, rate, controls, p95, failures = figures.list_values()
    names = (f"`{escape_cell(name)}`" for name in (report.config.model_name, report.config.profile))
    return [
        *names,
        str(passed),
        str(rate or "-"),
        str(controls or "none"),
        "-" if p95 is None else str(p95),
        str(failures),
    ]


def _render_added_columns(report: ConfigReport, tallies: CellTallies, times: Times) -> list[str]:
    config = report.config
    rate_texts = [
        text
        for tally in (tallies.overall, tallies.tools, tallies.control)
        for text in (tally.compute_answered_success().text, tally.compute_end_to_end_success().text)
    ]
    settings = (config.provider_name, report.label.strategy, report.label.fallback_profile, config.method)
    return [
        *map(escape_cell, settings), escape_cell(config.examples or "-"), *rate_texts,
        str(tallies.overall.not_applicable), *_render_retries(tallies.overall),
        render_quantile(times.p50), render_quantile(times.p95),
    ]  # fmt: skip


def _render_retries(tally: Tally) -> list[str]:
    if not tally.retries_known:
        return ["unknown"] * len(RETRY_COLUMNS)
    seconds = format_rounded(tally.backoff_ms / 1000, 1)
    return [str(tally.answers_429), str(tally.answers_5xx), str(tally.retries), seconds]


def escape_cell(text: str) -> str:
    r"""Return a text as one line, with `|`, `\` and `<` escaped and backticks replaced by apostrophes."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'").split())


def _render_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
