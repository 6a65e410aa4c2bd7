"""Rows of the matrix, each with the sums over the cells of one model with one profile and equal settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from zlib import crc32

from toolbench.lab.engine_version import select_distinct_versions
from toolbench.lab.metrics.definitions import METRICS
from toolbench.lab.metrics.pools import SumRow
from toolbench.lab.metrics.rate import Rate
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.scenario_versions import render_tokens, split_newest_versions
from toolbench.lab.metrics.tally import Tally, add_tallies, build_tally
from toolbench.lab.metrics.times import Times, build_times
from toolbench.lab.metrics.values import Figure, MetricInput, MetricValue, compute_metric
from toolbench.lab.models import Provider, RunConfig
from toolbench.lab.planning.run_request import NO_EXAMPLES
from toolbench.lab.results.matrix.query import SPLIT_BY_PROMPT, MatrixQuery
from toolbench.lab.results.trial_list.filter import STREAMED, WHOLE, TrialFilter

SETTING_FIELDS = ("strategy", "method", "examples", "tool_use_mode", "instance_kind", "stream")
FIELD_LABELS = {"tool_use_mode": "tool use", "instance_kind": "instances", "stream": "answers"}
_VALUE_LABELS = {("instance_kind", "parity"): "published wording"}  # by field and value
MODEL_KEY = ("provider_name", "provider_kind", "model_name")
ROW_KEY = (*MODEL_KEY, "profile", *SETTING_FIELDS)
MAX_NAMED_SCENARIOS = 2


@dataclass(frozen=True, slots=True)
class ScenarioSums:
    """Sums of one scenario of a row, in one version.

    Attributes:
        group: group of scenarios; CONTROL_GROUP for a control, unless it is a test case.
        control: whether the scenario is a control.
        times: times of the trials with an answer.
    """

    scenario: str
    version: int
    group: str
    control: bool
    tally: Tally
    times: Times

    @property
    def token(self) -> str:
        """Return the scenario and its version as in `TrialFilter.without`."""
        return f"{self.scenario}@{self.version}"


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A row of the matrix.

    Attributes:
        key: value of `cell` in the URL.
        name: model name without the vendor before the last slash.
        settings: values by name of SETTING_FIELDS; `stream` is "streamed" or "".
        repeats_model: True if the row above has the same model at the same provider.
        metric_input: counts of the scenarios, and times of the tool scenarios.
        value: value of the chosen metric.
        times: times of all tool scenarios of the row.
        simulated: whether the model is simulated.
        local: whether the model runs on this machine, so that decisions ignore its latency.
        mixed_upstreams: whether a router could choose among several hosts of the model.
        differing: "settings" if frozen settings differ between the pooled trials, and "engine" if engine versions do.
        published: passes and trials of the published matrix, such as `37/40`, or "with tools off"; "" for a row that
            the publication lacks.
        group: group of the tool scenarios.
        omitted: other versions of its scenarios, which the row does not count, as in `TrialFilter.without`.
        trial_filter: filter of the trials that the row counts: those of its tool scenarios, or of its controls if the
            metric covers only these.
        prompt: the prompt version if there is a row for each version, else None.
        versions: versions of its scenarios, but only of those that the matrix shows in several versions.
        outdated: scenarios that another row has in a newer version, each with this row's version, such as
            `happy_path version 1`.
    """

    key: str
    provider: str
    model: str
    name: str
    profile: str
    settings: Mapping[str, str]
    repeats_model: bool
    metric_input: MetricInput
    value: MetricValue
    times: Times
    scenarios: tuple[ScenarioSums, ...]
    config_ids: tuple[int, ...]
    run_ids: tuple[int, ...]
    simulated: bool
    local: bool
    mixed_upstreams: bool
    differing: tuple[str, ...]
    published: str
    group: str
    omitted: str
    trial_filter: TrialFilter
    prompt: str | None = None
    versions: tuple[int, ...] = ()
    outdated: tuple[str, ...] = ()

    @property
    def setting_labels(self) -> Mapping[str, str]:
        """Return the values of `settings` as pages show them."""
        return {name: label_setting(name, value) for name, value in self.settings.items()}

    @property
    def tally(self) -> Tally:
        """Return the counts of the tool scenarios."""
        return self.metric_input.tools

    @property
    def control(self) -> Tally:
        """Return the counts of the controls."""
        return self.metric_input.control

    @property
    def rate(self) -> Rate | None:
        """Return the rate of the chosen metric; None if the metric is no rate."""
        return self.value.rate

    @property
    def figure(self) -> Figure | None:
        """Return the figure of the chosen metric; None for a quantile, a rate or an unknown value."""
        return None if self.value.quantile else self.value.figure

    @property
    def trials_query(self) -> str:
        """Return the query string that selects the trials of the row."""
        return self.trial_filter.query()

    @property
    def scenario_filter(self) -> TrialFilter:
        """Return a filter that, with a scenario added, selects the trials that the row counts in the scenario."""
        chosen = replace(self.trial_filter.chosen, scenarios=())
        return replace(self.trial_filter, group="", scenario="", without=self.omitted, chosen=chosen)

    @property
    def applicable(self) -> bool:
        """Return whether any ended tool trial was applicable, or none has ended."""
        return not (self.tally.not_applicable and self.tally.not_applicable == self.tally.ended)

    @property
    def ranked(self) -> bool:
        """Return whether the row is compared: it is applicable, has a value and has no outdated scenario."""
        has_value = bool(self.rate.n) if self.rate else self.value.is_known
        return self.applicable and has_value and not self.outdated

    @property
    def failure_summary(self) -> str:
        """Return the numbers of failures by tool scenario as text, the largest first.

        An example is `long_arguments_guard 4, happy_path 2, 3 elsewhere`. Infrastructure errors are included.
        """
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


class ProviderGroup(NamedTuple):
    """Rows of one provider."""

    provider: str
    rows: tuple[MatrixRow, ...]

    @property
    def simulated(self) -> bool:
        """Return whether any of the models is simulated."""
        return any(row.simulated for row in self.rows)

    @property
    def local(self) -> bool:
        """Return whether any of the models runs on this machine."""
        return any(row.local for row in self.rows)


def build_config_sort_key(config: RunConfig) -> tuple[object, ...]:
    """Return a key that sorts the configurations of a run as the matrix sorts its rows."""
    model = (getattr(config, name) for name in MODEL_KEY)
    settings = (getattr(config, name) for name in ROW_KEY if name not in (*MODEL_KEY, "instance_kind"))
    return *model, config.profile != "default", *settings


def label_setting(name: str, value: str) -> str:
    """Return the value of a field of SETTING_FIELDS as pages show it."""
    return _VALUE_LABELS.get((name, value), value)


def build_row(
    sum_rows: list[SumRow], query: MatrixQuery, group: str, published: Mapping[tuple[str, str], str]
) -> MatrixRow | None:
    """Return a row with the newest version of each of its scenarios.

    Args:
        sum_rows: the sums of the row's scenarios, at least one.
        query: scope, metric, target and filter.
        group: the chosen group of scenarios; controls are added whatever their group.
        published: `MatrixRow.published` by model and profile.

    Returns:
        None if no scenario belongs to the chosen group.
    """
    newest_rows, other_rows = split_newest_versions(sum_rows)
    group_rows = [sum_row for sum_row in newest_rows if sum_row["scenario_group"] == group]
    if not group_rows:
        return None
    shown = [*group_rows, *(sum_row for sum_row in newest_rows if sum_row["control"] and sum_row not in group_rows)]
    scenarios = tuple(map(_build_scenario_sums, shown))
    metric_input, first = build_metric_input(scenarios), newest_rows[0]
    config_ids = tuple(sorted({pk for sum_row in shown for pk in sum_row["config_ids"]}))
    run_ids = tuple(sorted({pk for sum_row in shown for pk in sum_row["run_ids"]}))
    metric, prompt = METRICS[query.metric], first["prompt_version"] if query.prompt == SPLIT_BY_PROMPT else None
    row = MatrixRow(
        key=str(config_ids[0]) if prompt is None else f"{config_ids[0]}-{crc32(prompt.encode()):x}",
        provider=first["provider_name"],
        model=first["model_name"],
        name=first["model_name"].rpartition("/")[2],
        profile=first["profile"],
        settings={**{name: first[name] for name in SETTING_FIELDS}, "stream": "streamed" if first["stream"] else ""},
        repeats_model=False,
        metric_input=metric_input,
        value=compute_metric(metric, metric_input, target=query.target),
        times=metric_input.pooled_times,
        scenarios=scenarios,
        config_ids=config_ids,
        run_ids=run_ids,
        simulated=any(sum_row["simulated"] for sum_row in shown),
        local=first["provider_kind"] == Provider.Kind.LOCAL,
        mixed_upstreams=any(sum_row["mixed_upstreams"] for sum_row in shown),
        differing=_list_differing(shown),
        published=published.get((first["model_name"], first["profile"]), ""),
        group=group,
        omitted=render_tokens(other_rows),
        trial_filter=_build_trial_filter(first, query),
        prompt=prompt,
    )
    return select_trials(row, of_control=metric.of_control)


def apply_metric(row: MatrixRow, query: MatrixQuery) -> MatrixRow:
    """Return the row with the value of the query's metric and the filter of the trials that the metric counts."""
    metric = METRICS[query.metric]
    valued_row = replace(row, value=compute_metric(metric, row.metric_input, target=query.target))
    return select_trials(valued_row, of_control=metric.of_control)


def select_trials(row: MatrixRow, *, of_control: bool) -> MatrixRow:
    """Return the row with the filter of the trials of its controls if `of_control`, else of its tool scenarios."""
    group = CONTROL_GROUP if of_control else row.group
    return replace(row, trial_filter=replace(row.trial_filter, without=row.omitted, group=group))


def build_metric_input(scenarios: Sequence[ScenarioSums]) -> MetricInput:
    """Return the counts of these scenarios, and the times of the tool scenarios among them."""
    tools = tuple(scenario for scenario in scenarios if not scenario.control)
    parts = tuple(tool.tally for tool in tools)
    control = add_tallies(scenario.tally for scenario in scenarios if scenario.control)
    return MetricInput(add_tallies(parts), control, parts, tuple(tool.times for tool in tools))


def _build_scenario_sums(sum_row: SumRow) -> ScenarioSums:
    return ScenarioSums(
        scenario=sum_row["scenario"],
        version=sum_row["scenario_version"],
        group=sum_row["scenario_group"],
        control=sum_row["control"],
        tally=build_tally(sum_row),
        times=build_times(sum_row),
    )


def _list_differing(sum_rows: list[SumRow]) -> tuple[str, ...]:
    """Return "settings" if frozen policies differ within a row, and "engine" if engine versions do.

    Prompts need no check: those of a scenario belong to its version, those of a method to the engine version.
    """
    engines = select_distinct_versions(version for sum_row in sum_rows for version in sum_row["engines"])
    differs_by_name = {
        "settings": len({policy_hash for sum_row in sum_rows for policy_hash in sum_row["hashes"]}) > 1,
        "engine": len(engines) > 1,
    }
    return tuple(name for name, differs in differs_by_name.items() if differs)


def _build_trial_filter(sum_row: SumRow, query: MatrixQuery) -> TrialFilter:
    """Return the filter of the trials of a row, without the group and the omitted versions of scenarios."""
    return TrialFilter(
        runs=",".join(map(str, query.runs)) if query.scope == "runs" else "",
        provider=sum_row["provider_name"],
        provider_kind=sum_row["provider_kind"],
        model=sum_row["model_name"],
        profile=sum_row["profile"],
        strategy=sum_row["strategy"],
        method=sum_row["method"],
        examples=sum_row["examples"] or NO_EXAMPLES,
        tool_use_mode=sum_row["tool_use_mode"],
        instance_kind=sum_row["instance_kind"],
        stream=STREAMED if sum_row["stream"] else WHOLE,
        demo="1" if query.scope == "demo" else "",
        prompt=sum_row["prompt_version"] if query.prompt == SPLIT_BY_PROMPT else query.prompt,
        imported="1" if query.scope == "imported" else "",
        chosen=replace(query.chosen, models=(), profiles=(), strategies=()).drop_single_choices(),
        scenario=query.chosen.scenarios[0] if len(query.chosen.scenarios) == 1 else "",
    )
