"""`matrix.md`: the case study's seven columns as it has them, then ours, and what the run shows."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from toolbench.evals.statistics import parity_percentile
from toolbench.evals.statistics.quantile_texts import write_quantile
from toolbench.evals.statistics.rounding import written
from toolbench.lab.interchange.report.findings import Finding
from toolbench.lab.interchange.report.rates import ConfigRates, rates_of
from toolbench.lab.interchange.report.summary import ConfigReport
from toolbench.lab.metrics.scenario_groups import in_groups
from toolbench.lab.metrics.tally import Tally
from toolbench.lab.metrics.times import Times, cell_times, merged
from toolbench.lab.models import Cell, Run
from toolbench.lab.results.matrix.export import SEVEN

RETRIES = ("answers of 429", "answers of 5xx", "retries", "back-off, s")
OURS = (
    "provider",
    "strategy",
    "fallback",
    "method",
    "examples",
    "overall, given an answer",
    "overall, delivered",
    "tools, given an answer",
    "tools, delivered",
    "control, given an answer",
    "control, delivered",
    "not applicable",
    *RETRIES,
    "tools, p50",
    "tools, p95",
)
_NUMBERS = {"tool_ok", "tool_ok_rate", "control_ok (chat_only)", "p95_ms", "not applicable", *RETRIES}
SIMULATED = "**Simulated.** The models are personas with published true rates: nothing here was measured on a real one."
NOTES = (
    "The first seven columns follow the case study: its rule of a pass, infrastructure counted as failure, p95 by "
    "index over all trials with the controls mixed in.",
    "Given an answer leaves infrastructure and our own deadline out; delivered counts them as failures. In brackets "
    "the percentage and its interval (Wilson 95 % unless it says always valid): it speaks of further repeats of these "
    "scenarios only.",
    "Answers of 429 and 5xx, retries and back-off are those of all trials, every execution included.",
    "The last two columns are the trial without queue, infrastructure left out: the value, its distribution-free 95 % "
    "bounds (open where there are too few answers for one) and the number of answers.",
    "A failed control is prompt brittleness, not a lack of tool calling.",
)
Line = tuple[ConfigReport, ConfigRates, Times]


def matrix_markdown(run: Run, reports: Sequence[ConfigReport], cells: Sequence[Cell], found: Sequence[Finding]) -> str:
    """One table; of a run with several groups of scenarios one for each, since groups are never pooled."""
    lines = [f"# {cell(str(run))}", ""]
    if run.simulated:
        lines += [SIMULATED, ""]
    lines += [f"Run {run.pk}, {run.get_state_display()}, {run.created_at:%Y-%m-%d %H:%M} UTC.", ""]
    lines += [f"- {note}" for note in NOTES]
    groups, times = in_groups(cells), cell_times(cells)
    for group, members in groups.items():
        lines += ["", f"## {cell(group)}"] if len(groups) > 1 else []
        lines += ["", *_table(_within(reports, members, times))]
    if not groups:
        lines += ["", *_table(())]
    lines += ["", "## Findings", "", *(f"- {cell(one.sentence)}" for one in found), ""]
    return "\n".join(lines)


def _within(reports: Sequence[ConfigReport], members: Sequence[Cell], times: Mapping[int, Times]) -> list[Line]:
    """The same configurations with what these cells say alone; a configuration without any of them is left out."""
    scenarios = {one.scenario for one in members}
    return [
        (
            replace(report, rows=[row for row in report.rows if row["scenario"] in scenarios]),
            rates_of(own),
            merged(times[one.pk] for one in own if not one.control),
        )
        for report in reports
        if (own := [one for one in members if one.config_id == report.config.pk])
    ]


def _table(lines: Sequence[Line]) -> Iterator[str]:
    columns = (*SEVEN, *OURS)
    yield _line(columns)
    yield f"|{'|'.join('---:' if name in _NUMBERS else '---' for name in columns)}|"
    for report, rates, times in sorted(lines, key=lambda line: (line[0].config.model_name, line[0].config.profile)):
        yield _line([*_seven(report), *_ours(report, rates, times)])


def _seven(report: ConfigReport) -> list[str]:
    tools, control = report.tool_rows, report.control_rows
    ok = sum(row["ok"] for row in tools)
    times = [row["elapsed_ms"] for row in report.rows]
    return [
        f"`{cell(report.config.model_name)}`",
        f"`{cell(report.config.profile)}`",
        f"{ok}/{len(tools)}",
        f"{written(100 * ok / len(tools), 1)}%" if tools else "-",
        f"{sum(row['ok'] for row in control)}/{len(control)}" if control else "none",
        written(parity_percentile(times, 95)) if times else "-",
        _top_failures(report),
    ]


def _top_failures(report: ConfigReport) -> str:
    """The two scenarios that failed most, then the most frequent category; equal counts in alphabetical order."""
    failed = [row for row in report.tool_rows if not row["ok"]]
    scenarios = _most_common(Counter(row["scenario"] for row in failed))[:2]
    categories = _most_common(Counter(row["error_category"] for row in failed))[:1]
    return "; ".join(f"{name} x{count}" for name, count in (*scenarios, *categories)) or "-"


def _most_common(found: Counter[str]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def _ours(report: ConfigReport, rates: ConfigRates, times: Times) -> list[str]:
    config = report.config
    parts = (rates.overall, rates.tools, rates.control)
    both = [text for sums in parts for text in (sums.given_an_answer().text, sums.delivered().text)]
    words = (config.provider_name, report.label.strategy, report.label.fallback_profile, config.method)
    return [
        *map(cell, words), cell(config.examples or "-"), *both, str(rates.overall.not_applicable),
        *_retries(rates.overall), write_quantile(times.p50), write_quantile(times.p95),
    ]  # fmt: skip


def _retries(counts: Tally) -> list[str]:
    if not counts.retries_known:
        return ["unknown"] * len(RETRIES)
    seconds = written(counts.backoff_ms / 1000, 1)
    return [str(counts.answers_429), str(counts.answers_5xx), str(counts.retries), seconds]


def cell(text: str) -> str:
    """Text that stays text in a table: no bar, no tag, no line break."""
    return " ".join(text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("`", "'").split())


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
