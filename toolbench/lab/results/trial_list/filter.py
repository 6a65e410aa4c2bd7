"""The filter of a list of trials: its fields in the URL and the rows that they select."""

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, fields
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Concat

from toolbench.lab.metrics.pools import CONFIG_FIELDS, CONFIRMATION_PURPOSE
from toolbench.lab.metrics.result_filter import NO_FILTER, ResultFilter, parse_day
from toolbench.lab.metrics.retries import RETRY_CONDITIONS, filter_by_retries
from toolbench.lab.metrics.scenario_versions import build_exclusion, is_version_tokens
from toolbench.lab.models import RunConfig, Trial
from toolbench.lab.query_params import QueryParams, clean_text, parse_whole_number
from toolbench.lab.results.table_layout import USUAL_LAYOUT, TableLayout
from toolbench.lab.results.trial_list.query_text import build_query_conditions, build_seen_condition, parse_query_text

MAX_VALUE_CHARS = 1_000  # characters of a value that is no list: the signature of a cluster, a JSON path
MAX_LISTED = 2_000  # ids, ranges or tokens in one field
MAX_QUERY_CHARS = 7_800  # characters of a link: the web server's limit of a request line is 8,190
STREAMED, WHOLE = "streamed", "whole"
NO_EXAMPLES = "none"
_OTHER_FIELDS = ("ignored", "chosen", "layout")  # no parameters of one text
ALL_SCOPES = "all"
ID_FIELDS = ("run", "cell", "config", "alike", "version", "instance", "cause_version")
LIST_FIELDS = ("runs", "configs", "cells", "without")
VERBATIM_FIELDS = (
    "path",
    "place",
    "cluster",
    "signature",
)  # made of keys that a model wrote, so blanks around them count
SORTS = {
    "failed": "failed first",
    "-failed": "failed last",
    "order": "in the order they ran",
    "slow": "slowest first",
    "fast": "fastest first",
    "tokens": "most tokens first",
    "-tokens": "fewest tokens first",
    "retries": "most retries first",
    "-retries": "fewest retries first",
    "turns": "most turns first",
    "-turns": "fewest turns first",
    "newest": "newest first",
    "oldest": "oldest first",
    "model": "by model",
    "-model": "by model, last first",
    "profile": "by profile",
    "-profile": "by profile, last first",
    "scenario": "by scenario",
    "-scenario": "by scenario, last first",
    "cause": "by cause",
    "-cause": "by cause, last first",
}
OUTCOMES = {
    "pass": Q(outcome=Trial.Outcome.PASS),
    "fail": Q(outcome=Trial.Outcome.FAIL),
    "infra": Q(outcome=Trial.Outcome.INFRA),
    "na": Q(outcome=Trial.Outcome.NOT_APPLICABLE),
    "cancelled": Q(outcome=Trial.Outcome.CANCELLED),
    "running": Q(state=Trial.State.RUNNING),
    "queued": Q(state=Trial.State.QUEUED),
}
FAILED_FIRST_ORDERING = ("rank", "-run_id", "position")
RUN_ORDERING = ("-run_id", "position")
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
    "group": "cell__scenario_group",
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


@dataclass(frozen=True, slots=True)
class TrialFilter:
    """Filter of trials as given in the URL. An empty field does not filter.

    Attributes:
        runs: primary keys, separated by commas.
        configs: primary keys, separated by commas.
        cells: primary keys or ranges such as 3-7, separated by commas.
        alike: a configuration: selects trials of every configuration with the same settings, without runs that
            confirm a decision.
        examples: NO_EXAMPLES selects trials without examples.
        seen: a cause that was seen in the trial.
        path: a JSON path, without list indexes, at which it was seen.
        place: what follows code and scenario in the text that groups failures: that of the failure class where one is
            chosen, else that of the cause.
        scope: ALL_SCOPES shows own, simulated and imported runs. Without it, and unless runs, cells or a configuration
            are named, `demo` 1 shows simulated runs only and `imported` 1 imported ones only; otherwise neither is
            shown.
        search: the text of the query bar.
        chosen: fields with several values, which the parameters model, profile, strategy and scenario may have, and
            days on which runs began.
        layout: columns and density of the list; it does not filter.
        ignored: names of fields, and terms of the query bar, whose values could not be read; they do not filter.
    """

    run: int | None = None
    runs: str = ""
    cell: int | None = None
    cells: str = ""
    config: int | None = None
    configs: str = ""
    alike: int | None = None
    group: str = ""  # of scenarios
    scenario: str = ""
    version: int | None = None  # of the scenario, as it was tried
    without: str = ""  # versions of scenarios that are left out: slug@version, with commas between
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
    stream: str = ""  # streamed or whole
    prompt: str = ""  # version of the prompts
    instance: int | None = None  # number of a drawn instance
    canonical: str = ""
    upstream: str = ""
    day: str = ""  # on which the trial began, in UTC
    failure_class: str = ""
    signature: str = ""
    cause: str = ""  # a code of the taxonomy that the trial failed of
    seen: str = ""  # a code that was seen in it, mended or not
    path: str = ""  # where `seen` was seen
    cluster: str = ""
    place: str = ""
    had: str = ""  # an answer of 429 or 5xx, or a retry, in any execution
    cause_version: int | None = None  # of the table of causes that named it
    label: str = ""
    search: str = ""
    scope: str = ""
    demo: str = ""
    imported: str = ""
    sort: str = "failed"
    chosen: ResultFilter = NO_FILTER
    layout: TableLayout = USUAL_LAYOUT
    ignored: tuple[str, ...] = ()

    @classmethod
    def from_query(cls, query: QueryParams) -> "TrialFilter":
        """Return the filter of these URL parameters."""
        chosen, unread_days = ResultFilter.from_query(query)
        values: dict[str, Any] = {"chosen": chosen.drop_single_choices(), "layout": TableLayout.from_query(query)}
        ignored: list[str] = list(unread_days)
        several = {name for name, found in chosen.choices.items() if len(found) > 1}
        for name in (field.name for field in fields(cls) if field.name not in _OTHER_FIELDS):
            if name in several:
                continue
            text = query.get(name, "")
            given = text.replace("\0", "") if name in VERBATIM_FIELDS else clean_text(text)
            if not given:
                continue
            value = _parse_value(name, given) if _is_short(name, given) else None
            if value is None:
                ignored.append(name)
            else:
                values[name] = value
        terms = parse_query_text(values["search"]).ignored if "search" in values else ()
        return cls(**values, ignored=(*ignored, *terms))

    def hidden_fields(self, shown: Set[str]) -> dict[str, str]:
        """Return the fields that a filter form must carry: every field that is set and not in `shown`."""
        given = self._list_values()
        return {name: str(value) for name, value in given.items() if value not in (None, "") and name not in shown}

    def query(self, **changes: object) -> str:
        """Return the query string with some fields changed, without empty fields and the default sort order."""
        layout = changes.pop("layout", self.layout)
        pairs = self._list_values() | changes
        if pairs.get("sort") == "failed":
            pairs["sort"] = ""
        given = [(name, value) for name, value in pairs.items() if value not in (None, "")]
        kept = [(name, value) for name, value in self.chosen.pairs if name not in changes]
        shown = layout.pairs if isinstance(layout, TableLayout) else ()
        return urlencode([*given, *kept, *shown], safe=",@")

    @property
    def is_empty(self) -> bool:
        """Whether nothing is chosen; columns and density do not count."""
        return not self.query(layout=USUAL_LAYOUT)

    @property
    def layout_fields(self) -> list[tuple[str, str]]:
        """The fields that a form for columns and density must carry."""
        return parse_qsl(self.query(layout=self.layout.without_trials))

    def _list_values(self) -> dict[str, Any]:
        names = (field.name for field in fields(self) if field.name not in _OTHER_FIELDS)
        return {name: getattr(self, name) for name in names}


_ALLOWED_VALUES: Mapping[str, tuple[str, ...]] = {
    "outcome": tuple(OUTCOMES),
    "sort": tuple(SORTS),
    "stream": (STREAMED, WHOLE),
    "scope": (ALL_SCOPES,),
    "had": tuple(RETRY_CONDITIONS),
}


def join_ids(ids: Iterable[int]) -> str:
    """Return ids separated by commas, with consecutive ids joined to ranges: 3-7,9."""
    ranges: list[list[int]] = []
    for number in sorted(set(ids)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)


def _is_short(name: str, given: str) -> bool:
    return given.count(",") < MAX_LISTED if name in LIST_FIELDS else len(given) <= MAX_VALUE_CHARS


def _is_range_list(text: str) -> bool:
    bounds = [part.split("-") for part in text.split(",")]
    return all(len(ends) <= 2 and None not in map(parse_whole_number, ends) for ends in bounds)


def _build_cell_condition(text: str) -> Q:
    bounds = [part.split("-") for part in text.split(",")]
    return Q(*(Q(cell_id__gte=int(ends[0]), cell_id__lte=int(ends[-1])) for ends in bounds), _connector=Q.OR)


def _build_list_condition(trial_filter: TrialFilter) -> Q:
    """Return the condition of the fields that hold lists."""
    found = build_exclusion(trial_filter.without) & trial_filter.chosen.condition
    if trial_filter.place:
        found &= _build_place_condition(trial_filter)
    if trial_filter.cluster:
        found &= ~Q(cause="")  # true of every cluster; without it PostgreSQL does not use the partial index
    if trial_filter.runs:
        found &= Q(run_id__in=trial_filter.runs.split(","))
    if trial_filter.configs:
        found &= Q(config_id__in=trial_filter.configs.split(","))
    return found & _build_cell_condition(trial_filter.cells) if trial_filter.cells else found


def _build_alike_condition(config_id: int) -> Q:
    """Return the condition on trials of configurations with the settings of this one, with one query."""
    settings = RunConfig.objects.filter(pk=config_id).values(*CONFIG_FIELDS).first()
    if settings is None:
        return Q(pk=None)
    same = RunConfig.objects.filter(**settings)
    return Q(config__in=same) & ~Q(run__purpose=CONFIRMATION_PURPOSE)


def _build_place_condition(trial_filter: TrialFilter) -> Q:
    """Return the condition of equal path and turn in any scenario."""
    code, column = ("failure_class", "signature") if trial_filter.failure_class else ("cause", "cause_signature")
    separator = Value(" · ")
    return Q((column, Concat(code, separator, "scenario", separator, Value(trial_filter.place))))


def _parse_value(name: str, given: str) -> int | str | None:
    """Return the value of a field; None if it is not valid."""
    if name in ID_FIELDS:
        return parse_whole_number(given)
    if name == "without":
        return given if is_version_tokens(given) else None
    if name == "cells":
        return given if _is_range_list(given) else None
    if name == "day":
        return given if parse_day(given) else None
    if name in ("runs", "configs"):
        return given if None not in map(parse_whole_number, given.split(",")) else None
    allowed = _ALLOWED_VALUES.get(name, (given,))
    return given if given in allowed else None


def filter_trials(trial_filter: TrialFilter) -> QuerySet[Trial]:
    """Return the trials that match the filter, unordered and without deleted runs."""
    kept = Trial.objects.filter(_build_list_condition(trial_filter), run__deleted_at=None)
    found = filter_by_retries(kept.annotate(rank=FAILED_FIRST), trial_filter.had)
    for name, column in FIELD_COLUMNS.items():
        if (value := getattr(trial_filter, name)) not in (None, ""):
            found = found.filter(**{column: value})
    if trial_filter.alike:
        found = found.filter(_build_alike_condition(trial_filter.alike))
    if trial_filter.examples:
        found = found.filter(config__examples="" if trial_filter.examples == NO_EXAMPLES else trial_filter.examples)
    if trial_filter.stream:
        found = found.filter(config__stream=trial_filter.stream == STREAMED)
    if trial_filter.seen or trial_filter.path:
        found = found.filter(build_seen_condition(trial_filter.seen, trial_filter.path))
    if trial_filter.outcome:
        found = found.filter(OUTCOMES[trial_filter.outcome])
    if trial_filter.search:
        found = found.filter(*build_query_conditions(parse_query_text(trial_filter.search), OUTCOMES))
    if not _has_named_runs(trial_filter):
        found = found.filter(_build_scope_condition(trial_filter))
    return found


def _has_named_runs(trial_filter: TrialFilter) -> bool:
    """Return whether runs, cells or a configuration are named, so that the general scope does not apply."""
    return bool(trial_filter.runs or trial_filter.configs or trial_filter.cells) or any(
        pk is not None for pk in (trial_filter.run, trial_filter.cell, trial_filter.config)
    )


def _build_scope_condition(trial_filter: TrialFilter) -> Q:
    """Return the condition of the scope: imported, simulated or other runs; no condition for ALL_SCOPES."""
    if trial_filter.scope == ALL_SCOPES:
        return Q()
    if trial_filter.imported:
        return Q(run__imported=True)
    return Q(run__imported=False, run__simulated=bool(trial_filter.demo))
