"""Filter of a list of trials: its fields in the URL and the trials that they select."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Concat

from toolbench.lab.metrics.pools import CONFIG_FIELDS, CONFIRMATION_PURPOSE
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter, parse_day
from toolbench.lab.metrics.retries import RETRY_CONDITIONS, filter_by_retries
from toolbench.lab.metrics.scenario_groups import CONTROL_GROUP
from toolbench.lab.metrics.scenario_versions import build_exclusion, is_version_tokens
from toolbench.lab.models import Run, RunConfig, Trial
from toolbench.lab.planning.run_request import NO_EXAMPLES
from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number
from toolbench.lab.results.scopes import IMPORTED, NAMED_RUNS, REAL, SIMULATED
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout
from toolbench.lab.results.trial_list.query_hints import list_query_hints
from toolbench.lab.results.trial_list.query_text import (
    build_query_conditions,
    build_seen_condition,
    parse_query_text,
    read_outcome,
)
from toolbench.lab.results.trial_list.sort_columns import DEFAULT_SORT, SORTS

MAX_VALUE_CHARS = 1_000  # characters of a value that is not a list, such as a signature or a JSON path
MAX_LISTED = 2_000  # ids, ranges or tokens in one field
STREAMED, WHOLE = "streamed", "whole"
_COMPOSITE_FIELDS = ("ignored", "chosen", "layout")  # not read from one URL parameter
ALL_SCOPES = "all"
INTEGER_FIELDS = ("run", "cell", "config", "alike", "version", "instance", "cause_version")
LIST_FIELDS = ("runs", "configs", "cells", "without")
# These fields may contain JSON keys that a model wrote, so white space at their ends is kept.
VERBATIM_FIELDS = ("path", "place", "cluster", "signature")
OUTCOMES = {
    "pass": Q(outcome=Trial.Outcome.PASS),
    "fail": Q(outcome=Trial.Outcome.FAIL),
    "infra": Q(outcome=Trial.Outcome.INFRA),
    "na": Q(outcome=Trial.Outcome.NOT_APPLICABLE),
    "cancelled": Q(outcome=Trial.Outcome.CANCELLED),
    "running": Q(state=Trial.State.RUNNING),
    "queued": Q(state=Trial.State.QUEUED),
}
FAILED_FIRST = Case(
    When(outcome=Trial.Outcome.FAIL, then=Value(0)),
    When(outcome=Trial.Outcome.INFRA, then=Value(1)),
    When(state__in=[Trial.State.QUEUED, Trial.State.RUNNING], then=Value(3)),
    default=Value(2),
    output_field=IntegerField(),
)
FIELD_COLUMNS = {
    "run": "run_id",
    "cell": "cell_id",
    "config": "config_id",
    "scenario": "scenario",
    "version": "scenario_version",
    "provider": "config__provider_name",
    "provider_kind": "config__provider_kind",
    "model": "config__model_name",
    "profile": "config__profile",
    "strategy": "config__strategy",
    "method": "config__method",
    "tool_use_mode": "config__tool_use_mode",
    "instance_kind": "instance_kind",
    "prompt": "prompt_version",
    "instance": "instance_seed",
    "canonical": "config__canonical",
    "upstream": "upstream",
    "day": "started_at__date",
    "failure_class": "failure_class",
    "signature": "signature",
    "cause": "cause",
    "cluster": "cause_signature",
    "cause_version": "taxonomy",
    "label": "label",
}

# A filter that sets only these fields may select most of all trials.
_FIELDS_OF_MOST_TRIALS = ("scope", "demo", "imported", "outcome", "had", "sort", "layout", "ignored")


@dataclass(frozen=True, slots=True)
class TrialFilter:
    """Filter of trials with the fields of the URL. An empty field does not filter.

    Attributes:
        run: primary key of a run.
        runs: primary keys of runs, separated by commas.
        cell: primary key of a cell.
        cells: primary keys of cells or ranges of them such as 3-7, separated by commas.
        config: primary key of a configuration.
        configs: primary keys of configurations, separated by commas.
        alike: primary key of a configuration; selects trials of every configuration with the same settings, except
            trials of confirmation runs.
        group: group of tool scenarios; CONTROL_GROUP selects the controls of all groups.
        version: version of the scenario at launch.
        without: omitted versions of scenarios, as slug@version, separated by commas.
        outcome: a key of OUTCOMES.
        examples: name of the examples; NO_EXAMPLES selects trials without examples.
        stream: STREAMED or WHOLE.
        prompt: version of the prompts.
        instance: seed of an instance.
        canonical: canonical model.
        day: day on which the trial began, in UTC.
        signature: text that groups failures with the same failure class, scenario and path.
        cause: cause code of the failure.
        seen: cause code that was found in the trial, even if the model recovered.
        path: JSON path at which the cause `seen` was found; without `seen`, that of any cause or wrong argument.
        cluster: text that groups failures with the same cause, scenario, path and turn.
        place: rest of `signature` (if a failure class is chosen) or of `cluster`, after code and scenario, such as
            `$.city` or `$.city · turn 2`.
        had: a key of RETRY_CONDITIONS: an answer with status 429 or 5xx, or a retry, in any execution.
        cause_version: version of the table of causes that gave `cause`.
        search: text of the query bar.
        scope: ALL_SCOPES selects runs of real providers, simulated and imported runs. Without it, only one of these
            kinds is selected, by `demo` and `imported`, unless runs, cells or configurations are given.
        demo: "1" selects simulated runs only, unless `imported` is set.
        imported: "1" selects imported runs only.
        sort: a key of SORTS.
        chosen: several values of model, profile, strategy or scenario, and limits of the time and id of runs.
        layout: columns and density of the list; it does not filter.
        ignored: names of fields, and terms of the query bar, whose values could not be read.
    """

    run: int | None = None
    runs: str = ""
    cell: int | None = None
    cells: str = ""
    config: int | None = None
    configs: str = ""
    alike: int | None = None
    group: str = ""
    scenario: str = ""
    version: int | None = None
    without: str = ""
    outcome: str = ""
    provider: str = ""
    provider_kind: str = ""
    model: str = ""
    profile: str = ""
    strategy: str = ""
    method: str = ""
    examples: str = ""
    tool_use_mode: str = ""
    instance_kind: str = ""
    stream: str = ""
    prompt: str = ""
    instance: int | None = None
    canonical: str = ""
    upstream: str = ""
    day: str = ""
    failure_class: str = ""
    signature: str = ""
    cause: str = ""
    seen: str = ""
    path: str = ""
    cluster: str = ""
    place: str = ""
    had: str = ""
    cause_version: int | None = None
    label: str = ""
    search: str = ""
    scope: str = ""
    demo: str = ""
    imported: str = ""
    sort: str = DEFAULT_SORT
    chosen: ResultFilter = NO_FILTER
    layout: TableLayout = USUAL_LAYOUT
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "TrialFilter":
        """Parse URL parameters; names of those that cannot be read are listed in `ignored`."""
        chosen, unread_names = ResultFilter.from_query(query)
        values: dict[str, Any] = {"chosen": chosen.drop_single_choices(), "layout": TableLayout.from_query(query)}
        ignored: list[str] = list(unread_names)
        values |= _SCOPES_OF_OTHER_PAGES.get(clean_text(query.get("scope", "")), {})
        multi_value_names = {name for name, chosen_values in chosen.choices.items() if len(chosen_values) > 1}
        for name in (field.name for field in fields(cls) if field.name not in _COMPOSITE_FIELDS):
            if name in multi_value_names:
                continue
            text = query.get(name, "")
            cleaned = text.replace("\0", "") if name in VERBATIM_FIELDS else clean_text(text)
            if not cleaned or (name == "scope" and cleaned in _SCOPES_OF_OTHER_PAGES):
                continue
            value = _parse_value(name, cleaned) if _is_short(name, cleaned) else None
            if value is None:
                ignored.append(name)
            else:
                values[name] = value
        terms = parse_query_text(values["search"]).ignored if "search" in values else ()
        return cls(**values, ignored=(*ignored, *terms))

    def get_hidden_fields(self, shown: Set[str]) -> dict[str, str]:
        """Return the hidden fields of a filter form: every field with a value, except `chosen`, `layout` and `ignored`.

        Args:
            shown: names of the fields that the form shows, which are left out.
        """
        values = self._get_values()
        return {name: str(value) for name, value in values.items() if value not in (None, "") and name not in shown}

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed.

        Empty fields and the default order are left out. A change of `layout` replaces columns and density; a change of
        a field also removes its values from `chosen`.
        """
        layout = changes.pop("layout", self.layout)
        values = self._get_values() | changes
        if values.get("sort") == DEFAULT_SORT:
            values["sort"] = ""
        field_pairs = [(name, value) for name, value in values.items() if value not in (None, "")]
        choice_pairs = [(name, value) for name, value in self.chosen.pairs if name not in changes]
        layout_pairs = layout.pairs if isinstance(layout, TableLayout) else ()
        return urlencode([*field_pairs, *choice_pairs, *layout_pairs], safe=",@")

    @property
    def hints(self) -> tuple[str, ...]:
        """Return advice for terms and words of the query bar that do not filter, and for words that look like terms."""
        return list_query_hints(self.search)

    @property
    def is_empty(self) -> bool:
        """Return whether no field is set; columns and density do not count."""
        return not self.query(layout=USUAL_LAYOUT)

    @property
    def layout_fields(self) -> list[tuple[str, str]]:
        """Return the hidden fields of the form for columns and density, as (name, value)."""
        return parse_qsl(self.query(layout=self.layout.without_trials))

    def _get_values(self) -> dict[str, Any]:
        names = (field.name for field in fields(self) if field.name not in _COMPOSITE_FIELDS)
        return {name: getattr(self, name) for name in names}


# Values of the parameter `scope` on other pages, as fields of this filter.
_SCOPES_OF_OTHER_PAGES: Mapping[str, Mapping[str, str]] = {
    REAL: {},
    NAMED_RUNS: {},
    SIMULATED: {"demo": "1"},
    IMPORTED: {"imported": "1"},
}


_ALLOWED_VALUES: Mapping[str, tuple[str, ...]] = {
    "outcome": tuple(OUTCOMES),
    "sort": tuple(SORTS),
    "stream": (STREAMED, WHOLE),
    "scope": (ALL_SCOPES,),
    "had": tuple(RETRY_CONDITIONS),
}


def _is_short(name: str, text: str) -> bool:
    return text.count(",") < MAX_LISTED if name in LIST_FIELDS else len(text) <= MAX_VALUE_CHARS


def _is_range_list(text: str) -> bool:
    bounds = [part.split("-") for part in text.split(",")]
    return all(len(ends) <= 2 and None not in map(parse_whole_number, ends) for ends in bounds)


def _build_cell_condition(text: str) -> Q:
    bounds = [part.split("-") for part in text.split(",")]
    return Q(*(Q(cell_id__gte=int(ends[0]), cell_id__lte=int(ends[-1])) for ends in bounds), _connector=Q.OR)


def _build_list_condition(trial_filter: TrialFilter) -> Q:
    """Return the condition of the fields that are lists, and of `chosen`, `group` and `place`.

    For the field `cluster`, the condition only lets PostgreSQL use an index; the value is not compared here.
    """
    condition = build_exclusion(trial_filter.without) & trial_filter.chosen.condition
    if trial_filter.group:
        condition &= _build_group_condition(trial_filter.group)
    if trial_filter.place:
        condition &= _build_place_condition(trial_filter)
    if trial_filter.cluster:
        condition &= ~Q(cause="")  # true for every cluster; PostgreSQL uses the partial index only with this condition
    if trial_filter.runs:
        condition &= Q(run_id__in=trial_filter.runs.split(","))
    if trial_filter.configs:
        condition &= Q(config_id__in=trial_filter.configs.split(","))
    return condition & _build_cell_condition(trial_filter.cells) if trial_filter.cells else condition


def _build_alike_condition(config_id: int, run_id: int | None) -> Q:
    """Return the condition of the field `alike`, with one SQL query.

    If `run_id` is not None, only configurations of this run are taken. No trial matches an unknown configuration.
    """
    settings = RunConfig.objects.filter(pk=config_id).values(*CONFIG_FIELDS).first()
    if settings is None:
        return Q(pk=None)
    same_configs = RunConfig.objects.filter(**settings)
    if run_id is not None:
        same_configs = same_configs.filter(run=run_id)
    return Q(config__in=same_configs) & ~Q(run__purpose=CONFIRMATION_PURPOSE)


def _build_group_condition(group: str) -> Q:
    if group == CONTROL_GROUP:
        return Q(cell__control=True)
    return Q(cell__control=False, cell__scenario_group=group)


def _build_place_condition(trial_filter: TrialFilter) -> Q:
    """Return the condition of the field `place`: the same path and turn in any scenario."""
    code, column = ("failure_class", "signature") if trial_filter.failure_class else ("cause", "cause_signature")
    separator = Value(" · ")
    return Q((column, Concat(code, separator, "scenario", separator, Value(trial_filter.place))))


def _parse_value(name: str, text: str) -> int | str | None:
    """Return the value of a field; None if it is not valid."""
    if name in INTEGER_FIELDS:
        return parse_whole_number(text)
    if name == "without":
        return text if is_version_tokens(text) else None
    if name == "cells":
        return text if _is_range_list(text) else None
    if name == "day":
        return text if parse_day(text) else None
    if name in ("runs", "configs"):
        return text if None not in map(parse_whole_number, text.split(",")) else None
    allowed_values = _ALLOWED_VALUES.get(name, (text,))
    text = read_outcome(text) if name == "outcome" else text
    return text if text in allowed_values else None


def filter_trials(trial_filter: TrialFilter) -> QuerySet[Trial]:
    """Return the trials that match the filter, in no particular order and without those of deleted runs.

    They are annotated with `rank`, the value of FAILED_FIRST. An `alike` filter takes one SQL query.
    """
    listed = Trial.objects.filter(_build_list_condition(trial_filter), run__deleted_at=None)
    ranked = listed.annotate(rank=FAILED_FIRST)
    trials = filter_by_retries(ranked, trial_filter.had, starts_at_steps=_selects_most_trials(trial_filter))
    for name, column in FIELD_COLUMNS.items():
        if (value := getattr(trial_filter, name)) not in (None, ""):
            trials = trials.filter(**{column: value})
    if trial_filter.alike is not None:
        trials = trials.filter(_build_alike_condition(trial_filter.alike, trial_filter.run))
    if trial_filter.examples:
        trials = trials.filter(config__examples="" if trial_filter.examples == NO_EXAMPLES else trial_filter.examples)
    if trial_filter.stream:
        trials = trials.filter(config__stream=trial_filter.stream == STREAMED)
    if trial_filter.seen or trial_filter.path:
        trials = trials.filter(build_seen_condition(trial_filter.seen, trial_filter.path))
    if trial_filter.outcome:
        trials = trials.filter(OUTCOMES[trial_filter.outcome])
    if trial_filter.search:
        trials = trials.filter(*build_query_conditions(parse_query_text(trial_filter.search), OUTCOMES))
    if not has_named_runs(trial_filter):
        trials = trials.filter(_build_scope_condition(trial_filter))
    return trials


def has_named_runs(trial_filter: TrialFilter) -> bool:
    """Return whether runs, cells or configurations are given, so that the scope does not apply."""
    return bool(trial_filter.runs or trial_filter.configs or trial_filter.cells) or any(
        pk is not None for pk in (trial_filter.run, trial_filter.cell, trial_filter.config)
    )


def _selects_most_trials(trial_filter: TrialFilter) -> bool:
    """Return whether nothing but scope, outcome and retries selects trials."""
    return trial_filter == TrialFilter(**{name: getattr(trial_filter, name) for name in _FIELDS_OF_MOST_TRIALS})


def _build_scope_condition(trial_filter: TrialFilter) -> Q:
    """Return the condition of the scope: imported runs, simulated runs, runs of real providers, or all runs.

    Runs of the playground are selected only together with all other runs.
    """
    if trial_filter.scope == ALL_SCOPES:
        return Q()
    counted = ~Q(run__purpose=Run.PLAYGROUND)
    if trial_filter.imported:
        return counted & Q(run__imported=True)
    return counted & Q(run__imported=False, run__simulated=bool(trial_filter.demo))
