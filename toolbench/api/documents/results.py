"""Schemas of tables, the matrix, metrics, failures and latency."""

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import QuantileDocument, QuerySchema
from toolbench.api.documents.trials import Day, Text, Texts, WholeNumber
from toolbench.lab.interchange.masked_table import mask_table
from toolbench.lab.metrics.export_table import ExportTable, StreamedTable

# Each item is one id or several, such as "12,13".
RunIds = Annotated[list[Annotated[str, Field(pattern=r"^[0-9]{1,18}(,[0-9]{1,18})*$")]], Field(max_length=50)]


class ChosenQuery(QuerySchema):
    """Filter of results by runs, models, profiles, strategies, scenarios and days.

    Attributes:
        run: ids of runs, separated by commas or as several parameters.
        model: names of models, one in each parameter.
        profile: names of sampling profiles, one in each parameter.
        strategy: strategies or presets, one in each parameter.
        scenario: slugs of scenarios, one in each parameter.
        after: day (UTC) on or after which the runs were created.
        before: day (UTC) on or before which the runs were created.
        upto: id of the newest run that matches.
    """

    run: RunIds = []
    model: Texts = []
    profile: Texts = []
    strategy: Texts = []
    scenario: Texts = []
    after: Day | None = None
    before: Day | None = None
    upto: WholeNumber | None = None


class MatrixParameters(ChosenQuery):
    """Scope and filter of the matrix.

    Attributes:
        scope: `real` for measured runs of this installation (not simulated, not imported), `runs` for those in `run`,
            `demo` for simulated and `imported` for imported runs, `published` for the figures of the case study.
            If it is missing: `runs` if `run` names runs, otherwise `real` if there are such runs, else `published`.
        metric: name of a metric that GET /metrics lists. It affects only `warnings`: the table has the columns of all
            metrics.
        target: target of the success rate in percent.
        q: part of the name of the model or provider, in upper or lower case; "" for all.
        group: name of a group of scenarios; "" for the default group, which also replaces one without results.
        prompt: version of a scenario's prompt; `each` for one row per version; "" for all versions in one row.
        ids: whether the table has the column `runs` with the ids of the runs of a row, which may be thousands.
    """

    scope: Literal["real", "runs", "demo", "imported", "published"] | None = None
    metric: Text = ""
    target: Literal["80", "90", "95"] = "90"
    q: Text = ""
    group: Text = ""
    prompt: Text = ""
    ids: bool = False


class FailuresParameters(ChosenQuery):
    """Scope and filter of failures.

    Attributes:
        scope: `real` for measured runs of this installation (not simulated, not imported), `demo` for simulated runs.
            Runs that `run` names are counted in either scope.
    """

    scope: Literal["real", "demo"] = "real"


class LatencyParameters(QuerySchema):
    """Choice of the measured time and of a group of scenarios.

    Attributes:
        metric: `trial` for the whole trial; `working` for the trial without back-off; `model`, `tool` or `backoff` for
            the sum of the waits for the model, the tools or retries; `first_byte`, `first_token` or `first_call` for
            the time until the first byte, token or call.
        group: name of a group of scenarios; "" for the default group, which also replaces one without results.
    """

    metric: Literal["trial", "working", "first_byte", "first_token", "first_call", "model", "tool", "backoff"] = "trial"
    group: Text = ""


class TableDocument(Schema):
    """Table with the same content as the export of a page.

    Attributes:
        notes: sentences about how to read the table.
        columns: names of the columns.
        rows: rows with one value for each column. A few columns have lists. An unknown value is null.
    """

    title: str
    notes: list[str]
    columns: list[str]
    rows: list[list[Any]]


def iter_table_json(table: StreamedTable) -> Iterator[str]:
    """Yield the JSON of the TableDocument of a table, row by row, with known secrets masked."""
    masked_table = mask_table(table)
    head = {"title": masked_table.title, "notes": masked_table.notes, "columns": masked_table.columns}
    yield json.dumps(head).removesuffix("}") + ', "rows": ['
    separator = ""
    for row in masked_table.rows:
        yield f"{separator}{json.dumps(row)}"
        separator = ", "
    yield "]}"


def build_table(table: ExportTable, *, excluded_column: str = "") -> dict[str, Any]:
    """Return the values of a TableDocument.

    Args:
        table: the table.
        excluded_column: name of a column to leave out, if the table has it; "" for none.
    """
    indexes = [index for index, name in enumerate(table.columns) if name != excluded_column]
    columns = [table.columns[index] for index in indexes]
    rows = [[row[index] for index in indexes] for row in table.rows]
    return {"title": table.title, "notes": table.notes, "columns": columns, "rows": rows}


class MatrixDocument(Schema):
    """Matrix, with one row for each configuration.

    Attributes:
        scope: scope of the request, or the one that was chosen for it.
        target: target of the success rate in percent.
        groups: names of the groups of scenarios; [] in the scope `published`.
        warnings: sentences about limits of the figures and of a comparison of the rows.
    """

    scope: Literal["real", "runs", "demo", "imported", "published"]
    target: int
    groups: list[str]
    warnings: list[str]
    table: TableDocument


class MetricDocument(Schema):
    """Metric of the matrix.

    Attributes:
        name: name in parameters, and in columns such as `given_rate`.
        label: name in words.
        denominator: numerator and denominator of a rate in words, such as "passed / trials with an answer"; for other
            metrics, what they measure.
    """

    name: str
    label: str
    denominator: str


class FailureDocument(Schema):
    """Failure group.

    Attributes:
        signature: stored text with cause, scenario, path and turn, the parameter `cluster` of GET /trials.
        cause: cause code; "" if the current table of causes lacks it.
        version: version of the scenario.
        place: JSON path and turn of the failures, such as "$.ops[].path · turn 1".
        count: number of its trials.
        runs: number of runs with these trials.
        sentence: the first problem of the trial `exemplar`.
        exemplar: id of its first trial.
        nearest: id of a passed trial to compare `exemplar` with, of the same run and scenario, if possible also of the
            same cell and instance; null if none has stored bodies.
        trials: query string with which GET /trials lists the group.
    """

    signature: str
    cause: str
    scenario: str
    version: int
    place: str
    count: int
    runs: int
    sentence: str
    exemplar: int
    nearest: int | None
    trials: str


class CauseDocument(Schema):
    """Cause of failures.

    Attributes:
        cause: cause code.
        count: number of trials that failed or had an infrastructure error by this cause, in the newest version of each
            scenario.
        trials: query string with which GET /trials lists them.
    """

    cause: str
    count: int
    trials: str


class FailuresDocument(Schema):
    """Failures by cause, and the largest failure groups.

    Attributes:
        version: version of the table of causes that classified them.
        causes: the causes in the order of the table.
        groups: at most 40 groups, the largest first.
    """

    version: int
    causes: list[CauseDocument]
    groups: list[FailureDocument]


class LatencyRowDocument(Schema):
    """Times of one configuration in milliseconds.

    Attributes:
        config_id: id of the configuration.
        label: model, profile and the settings in which the rows differ.
        n: number of times.
        local: whether the model runs on the machine of Toolbench.
        p50: median.
        p95: 95th percentile.
        p99: 99th percentile.
        saturated: number of trials with event-loop lag, whose times include delays of Toolbench.
    """

    config_id: int
    label: str
    provider: str
    local: bool
    n: int
    p50: QuantileDocument
    p95: QuantileDocument
    p99: QuantileDocument
    saturated: int


class LatencyDocument(Schema):
    """Times of a run by configuration.

    Attributes:
        run: id of the run.
        metric: name of the measured time, as in the request.
        group: group of the scenarios whose times are counted; "" if the run has no scenarios.
        groups: names of all groups of the run's scenarios, the controls as `control`.
    """

    run: int
    metric: str
    group: str
    groups: list[str]
    rows: list[LatencyRowDocument]
