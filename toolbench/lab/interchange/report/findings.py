"""Findings of a run, which are sentences that fixed rules derive from counts and intervals."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from toolbench.engine.types import JsonObject
from toolbench.evals.judging import failure_classes
from toolbench.lab.interchange.report.summary import ConfigReport
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import group_cells
from toolbench.lab.metrics.tally import tally_cells
from toolbench.lab.models import Cell

NO_DIFFERENCE = "no clear difference"
MAX_QUIRKS = 12
QuirkCounts = Counter[tuple[str, str, str]]  # number of trials by model, kind ("transform" or "finding") and name


@dataclass(frozen=True, slots=True)
class RunFinding:
    """Finding about a run.

    Attributes:
        about: "hardest_scenario", "most_frequent_cause", "quirk" or "profiles".
        sentence: one or more sentences in plain text.
    """

    about: str
    sentence: str


def build_findings(
    reports: Sequence[ConfigReport], cells: Sequence[Cell], quirks: QuirkCounts
) -> tuple[RunFinding, ...]:
    """Return the findings of a run.

    Args:
        reports: reports of the run's configurations.
        cells: cells of the run.
        quirks: number of trials in which a transform made a change, or a finding about an answer occurred.
    """
    return (
        *_find_hardest_scenario(cells),
        *_find_main_failure_class(reports),
        *_iter_quirks(quirks),
        *_compare_profiles(reports, cells),
    )


def _find_hardest_scenario(cells: Sequence[Cell]) -> Iterator[RunFinding]:
    """Yield the tool scenario with the lowest answered success, if at least two scenarios have an answer."""
    scenarios = dict.fromkeys(cell.scenario for cell in cells if not cell.control)
    rates = {
        name: tally_cells(cell for cell in cells if cell.scenario == name).compute_answered_success()
        for name in scenarios
    }
    ranked_rates = sorted(((rate, name) for name, rate in rates.items() if rate.n), key=lambda pair: pair[0].axis)
    if len(ranked_rates) < 2:
        return
    (rate, name), *others = ranked_rates
    yield RunFinding("hardest_scenario", f"Hardest scenario: {name}, {rate.text}{_describe_overlap(rate, others)}.")


def _describe_overlap(rate: Rate, others: Sequence[tuple[Rate, str]]) -> str:
    """Return why another scenario may have a lower rate; "" if its interval lies below all other intervals.

    Args:
        rate: the lowest rate.
        others: rates and names of the other scenarios.
    """
    if rate.withheld:
        return "; its answers repeat, so it has no interval"
    overlapping = [name for other, name in others if not other.withheld and other.low <= rate.high]
    if overlapping:
        return f"; its interval overlaps with others, {overlapping[0]} among them"
    repeating = [name for other, name in others if other.withheld]
    return f"; {repeating[0]} has no interval, because its answers repeat" if repeating else ""


def _find_main_failure_class(reports: Sequence[ConfigReport]) -> Iterator[RunFinding]:
    """Yield the most frequent failure class, infrastructure errors included, or that no trial failed."""
    rows = [row for report in reports for row in report.rows if row["toolbench"]["failure_class"]]
    count_by_class = Counter(row["toolbench"]["failure_class"] for row in rows)
    if not count_by_class:
        yield RunFinding("most_frequent_cause", "No trial failed.")
        return
    code, count = min(count_by_class.items(), key=lambda pair: (-pair[1], pair[0]))
    sentence_by_class = {row.code: row.sentence for row in failure_classes.load_classes()}
    sentence = f" {sentence_by_class[code]}" if code in sentence_by_class else ""
    yield RunFinding(
        "most_frequent_cause", f"Most frequent failure class: {code}, {count} of {len(rows)} failures.{sentence}"
    )


def _iter_quirks(quirks: QuirkCounts) -> Iterator[RunFinding]:
    for (model, kind, name), count in sorted(quirks.items(), key=lambda pair: (-pair[1], pair[0]))[:MAX_QUIRKS]:
        verb_phrase = "made a change" if kind == "transform" else "occurred"
        yield RunFinding("quirk", f"{model}: {kind} {name} {verb_phrase} in {_format_trials(count)}.")
    if len(quirks) > MAX_QUIRKS:
        hidden_count = len(quirks) - MAX_QUIRKS
        yield RunFinding("quirk", f"{hidden_count} more transforms and findings, none in more trials than these.")


def _format_trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"


def _compare_profiles(reports: Sequence[ConfigReport], cells: Sequence[Cell]) -> Iterator[RunFinding]:
    """Yield the best and the worst profile of each model and group of scenarios, if their intervals do not overlap.

    Only configurations that differ in nothing but the profile are compared. The last finding lists the models with
    several profiles and no clear difference.
    """
    rates_by_key = _compute_rates_by_profile(reports, cells)
    undecided_models: list[str] = []
    for key, rates in rates_by_key.items():
        ordered = sorted(rates, key=lambda name: (-rates[name].axis, name))
        best, worst = rates[ordered[0]], rates[ordered[-1]]
        if best.low > worst.high:
            comparison = f"best profile {ordered[0]}, {best.text}; worst {ordered[-1]}, {worst.text}"
            yield RunFinding("profiles", f"{_describe_model(key, rates_by_key)}: {comparison}.")
        elif len(rates) > 1:
            undecided_models.append(_describe_model(key, rates_by_key))
    if undecided_models:
        yield RunFinding("profiles", f"Between the profiles of {', '.join(undecided_models)}: {NO_DIFFERENCE}.")


def _compute_rates_by_profile(
    reports: Sequence[ConfigReport], cells: Sequence[Cell]
) -> dict[tuple[str, ...], dict[str, Rate]]:
    """Return answered success without controls, by comparison key and profile.

    Rates without an answer or without an interval are left out. The key is model, provider, group of scenarios,
    strategy, fallback profile, method, examples and streaming.
    """
    rates_by_key: dict[tuple[str, ...], dict[str, Rate]] = defaultdict(dict)
    for (group, members), report in product(group_cells(cells).items(), reports):
        config, label = report.config, report.label
        streaming = "streamed" if config.stream else "not streamed"
        settings = (label.strategy, label.fallback_profile, config.method, config.examples, streaming)
        config_cells = [cell for cell in members if cell.config_id == config.pk and not cell.control]
        rate = tally_cells(config_cells).compute_answered_success()
        if rate.n and not rate.withheld:
            rates_by_key[config.model_name, config.provider_name, group, *settings][config.profile] = rate
    return rates_by_key


def _describe_model(key: tuple[str, ...], rates_by_key: dict[tuple[str, ...], dict[str, Rate]]) -> str:
    """Return the model's name, followed by those parts of the key in which the keys of this model differ."""
    model_keys = [other for other in rates_by_key if other[0] == key[0]]
    varying_values = [part for index, part in enumerate(key) if len({other[index] for other in model_keys}) > 1]
    return f"{key[0]} ({', '.join(part or 'no examples' for part in varying_values)})" if varying_values else key[0]


def findings_to_json(findings: Sequence[RunFinding]) -> list[JsonObject]:
    """Return the findings as a list of objects."""
    return [{"about": finding.about, "sentence": finding.sentence} for finding in findings]
