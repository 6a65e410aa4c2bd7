"""Rows of the matrix: one model with equal settings, summed over its cells."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from zlib import crc32

from toolbench.lab.engine_version import select_distinct_versions
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_versions import render_tokens, split_newest_versions
from toolbench.lab.metrics.tally import Tally, add_tallies, build_tally
from toolbench.lab.metrics.times import Times, build_times
from toolbench.lab.metrics.values import Figure, MetricInput, MetricValue, compute_metric
from toolbench.lab.models import Provider
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.trial_list.filter import NO_EXAMPLES, STREAMED, WHOLE, TrialFilter

SETTING_FIELDS = ("strategy", "method", "examples", "tool_use_mode", "instance_kind", "stream")
FIELD_LABELS = {"tool_use_mode": "tool use", "instance_kind": "instances", "stream": "answers"}
ROW_KEY = ("provider_name", "provider_kind", "model_name", "profile", *SETTING_FIELDS)
MAX_NAMED_SCENARIOS = 2  # scenarios


@dataclass(frozen=True, slots=True)
class ScenarioSums:
    """Sums of one scenario of a row."""

    scenario: str
    version: int
    control: bool
    tally: Tally
    times: Times


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A row of the matrix.

    Attributes:
        key: name of the row in the URL.
        repeats_model: True if the row above has the same model at the same provider.
        value: the value of the chosen metric.
        times: of all its tool scenarios together.
        prompt: the prompt version where rows are split by it, else None.
    """

    key: str
    provider: str
    kind: str
    model: str
    name: str
    profile: str
    settings: Mapping[str, str]
    repeats_model: bool
    counted: MetricInput
    value: MetricValue
    times: Times
    scenarios: tuple[ScenarioSums, ...]
    config_ids: tuple[int, ...]
    run_ids: tuple[int, ...]
    simulated: bool
    local: bool  # shares this machine: its latency takes no part in decisions
    mixed_upstreams: bool
    differing: tuple[str, ...]  # what is not the same in all that is pooled: settings, engine
    published: str
    trials: TrialFilter  # those behind the dots
    prompt: str | None = None
    versions: tuple[int, ...] = ()  # of its scenarios, where other versions of them are in view too
    outdated: tuple[str, ...] = ()  # scenarios, each with its version, of which another row tried a newer one

    @property
    def tally(self) -> Tally:
        """Return the counts of the tool scenarios."""
        return self.counted.tools

    @property
    def control(self) -> Tally:
        """Return the counts of the controls."""
        return self.counted.control

    @property
    def rate(self) -> Rate | None:
        """Return the rate of the chosen metric; None if the metric is no rate."""
        return self.value.rate

    @property
    def figure(self) -> Figure | None:
        """Return the figure of the chosen metric; None if the metric is a quantile or a rate."""
        return None if self.value.quantile else self.value.figure

    @property
    def trials_query(self) -> str:
        """Return the query string that selects the trials of the row."""
        return self.trials.query()

    @property
    def applicable(self) -> bool:
        """Return whether any finished trial was applicable, or none has finished."""
        return not (self.tally.not_applicable and self.tally.not_applicable == self.tally.ended)

    @property
    def ranked(self) -> bool:
        """Return whether the row is compared with others: it has a value, for the newest version of each scenario."""
        has_value = bool(self.rate.n) if self.rate else self.value.is_known
        return self.applicable and has_value and not self.outdated

    @property
    def failed_in(self) -> str:
        """Return where trials failed, most failures first: `long_arguments_guard 4, happy_path 2, 3 elsewhere`."""
        counts = [
            (scenario.tally.failed + scenario.tally.infra, scenario.scenario)
            for scenario in self.scenarios
            if not scenario.control
        ]
        worst = [pair for pair in sorted(counts, key=lambda pair: -pair[0]) if pair[0]]
        rest = sum(count for count, _ in worst[MAX_NAMED_SCENARIOS:])
        return ", ".join(
            [
                *(f"{name} {count}" for count, name in worst[:MAX_NAMED_SCENARIOS]),
                *([f"{rest} elsewhere"] if rest else []),
            ]
        )


def build_row(
    lines: list[dict[str, Any]], query: MatrixQuery, group: str, published: Mapping[tuple[str, str], str]
) -> MatrixRow | None:
    """Return a row that counts only the newest version tried of each scenario.

    Returns:
        None if nothing of the chosen group was tried.
    """
    lines, earlier = split_newest_versions(lines)
    tried = [line for line in lines if line["scenario_group"] == group]
    if not tried:
        return None
    shown = [*tried, *(line for line in lines if line["control"] and line not in tried)]
    scenarios = tuple(_build_scenario_sums(line) for line in shown)
    counted = _build_counted(scenarios)
    first = lines[0]
    config_ids = tuple(sorted({pk for line in shown for pk in line["config_ids"]}))
    run_ids = tuple(sorted({pk for line in shown for pk in line["run_ids"]}))
    metric = METRICS[query.metric]
    prompt = first["prompt_version"] if query.prompt == SPLIT_BY_PROMPT else None
    return MatrixRow(
        key=str(config_ids[0]) if prompt is None else f"{config_ids[0]}-{crc32(prompt.encode()):x}",
        provider=first["provider_name"],
        kind=first["provider_kind"],
        model=first["model_name"],
        name=first["model_name"].rpartition("/")[2],
        profile=first["profile"],
        settings={**{name: first[name] for name in SETTING_FIELDS}, "stream": "streamed" if first["stream"] else ""},
        repeats_model=False,
        counted=counted,
        value=compute_metric(metric, counted, target=query.target),
        times=counted.pooled_times,
        scenarios=scenarios,
        config_ids=config_ids,
        run_ids=run_ids,
        simulated=any(line["simulated"] for line in shown),
        local=first["provider_kind"] == Provider.Kind.LOCAL,
        mixed_upstreams=any(line["mixed_upstreams"] for line in shown),
        differing=_list_differing(shown),
        published=published.get((first["model_name"], first["profile"]), ""),
        trials=replace(
            _build_trial_filter(first, query, group="control" if metric.of_control else group),
            without=render_tokens(earlier),
        ),
        prompt=prompt,
    )


def _build_counted(scenarios: Sequence[ScenarioSums]) -> MetricInput:
    tools = tuple(scenario for scenario in scenarios if not scenario.control)
    parts = tuple(tool.tally for tool in tools)
    control = add_tallies(scenario.tally for scenario in scenarios if scenario.control)
    return MetricInput(add_tallies(parts), control, parts, tuple(tool.times for tool in tools))


def _build_scenario_sums(line: dict[str, Any]) -> ScenarioSums:
    return ScenarioSums(
        line["scenario"], line["scenario_version"], line["control"], build_tally(line), build_times(line)
    )


def _list_differing(lines: list[dict[str, Any]]) -> tuple[str, ...]:
    """Return what differs within a row.

    Prompts need no check: a scenario's prompts are part of its version, a method's prompts of the engine version.
    """
    found = {
        "settings": len({line_hash for line in lines for line_hash in line["hashes"]}) > 1,
        "engine": len(select_distinct_versions(version for line in lines for version in line["engines"])) > 1,
    }
    return tuple(name for name, differs in found.items() if differs)


def _build_trial_filter(line: dict[str, Any], query: MatrixQuery, *, group: str) -> TrialFilter:
    """Return the filter of exactly the trials that a row with this key counts."""
    return TrialFilter(
        runs=",".join(map(str, query.runs)) if query.scope == "runs" else "",
        group=group,
        provider=line["provider_name"],
        provider_kind=line["provider_kind"],
        model=line["model_name"],
        profile=line["profile"],
        strategy=line["strategy"],
        method=line["method"],
        examples=line["examples"] or NO_EXAMPLES,
        tool_use_mode=line["tool_use_mode"],
        instance_kind=line["instance_kind"],
        stream=STREAMED if line["stream"] else WHOLE,
        demo="1" if query.scope == "demo" else "",
        prompt=line["prompt_version"] if query.prompt == SPLIT_BY_PROMPT else query.prompt,
        imported="1" if query.scope == "imported" else "",
        chosen=replace(query.chosen, models=(), profiles=(), strategies=()).drop_single_choices(),
        scenario=query.chosen.scenarios[0] if len(query.chosen.scenarios) == 1 else "",
    )
