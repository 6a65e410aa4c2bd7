"""Schemas of test cases and their sets."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, QuerySchema
from toolbench.lab.cases.drafts import MAX_TITLE_CHARS
from toolbench.lab.cases.edit import DEFAULT_SET_NAME

Title = Annotated[str, Field(max_length=MAX_TITLE_CHARS)]
SetName = Annotated[str, Field(min_length=1, max_length=80)]
Text = Annotated[str, Field(max_length=200_000)]


class CaseDocument(Schema):
    """Test case.

    Attributes:
        set: name of its set.
        version: number of its current version.
    """

    slug: str
    title: str
    set: str
    version: int


class CaseSetDocument(Schema):
    """Set of test cases.

    Attributes:
        kind: `own` for cases of users, `bfcl` for cases of the benchmark BFCL.
        public: whether exports and bundles include its cases by default.
    """

    id: int
    name: str
    kind: Literal["own", "bfcl"]
    public: bool
    cases: list[CaseDocument]


class CaseBody(BodySchema):
    """Test case with the fields of the page *New test case*; docs/cases.md describes them. A null field is unused.

    Attributes:
        title: title; "" for a title that is built from the expected tools and the message.
        tools: list of tools in OpenAI's form.
        message: the user's message; empty if `messages` is given.
        messages: a conversation that ends with the user's message; null for a single message.
        expect: expected call or calls, or checks; a test case without it is refused.
        system: system prompt; "" for none.
        results: results of the simulated tools by the tool's name.
        start: state before the first call.
        turns: maximum of turns. Null stands for 1 if the case expects one call and nothing else, and has no later
            messages and no faults; otherwise for the limit of the policy.
        parallel: whether to request several calls in one answer.
        further: later messages of the user: a text, or a list of at most 20.
        group: name of a group, whose rates are shown separately; "" for none.
        control: whether the task needs no tool.
        behaviour: verdicts say whether this behaviour occurred: `mixed_turn`, `id_left_out`, `ops_refused`,
            `parallel_turn`, `arguments_too_large` or `output_too_large`; "" for none.
        workspace: `{id, writable}` of the workspace that `state_get` and `state_patch` use.
        settings: settings of the loop: `max_tokens`, `max_tool_args_bytes`, `max_tool_output_bytes`,
            `max_tool_calls_per_turn`, `tool_timeout_seconds`, `tool_failure_policy` or `tool_use_mode`.
    """

    title: Title = ""
    tools: JsonValue = None
    message: Text = ""
    messages: Annotated[list[JsonValue], Field(min_length=1, max_length=200)] | None = None
    expect: JsonValue = None
    system: Text = ""
    results: JsonValue = None
    start: JsonValue = None
    turns: Annotated[int, Field(ge=1, le=1_000)] | None = None
    parallel: bool = False
    further: JsonValue = None
    group: Text = ""
    control: bool = False
    behaviour: Text = ""
    workspace: JsonValue = None
    settings: JsonValue = None


class NewCaseBody(CaseBody):
    """New test case.

    Attributes:
        set: name of its set. A new name becomes a private set; names of benchmarks and of the playground are refused.
    """

    set: SetName = DEFAULT_SET_NAME


class CaseDetailDocument(CaseDocument):
    """Test case with all fields, in the form of CaseBody.

    Attributes:
        message: the user's message; "" with `messages`.
        messages: the conversation, with an empty `message`; null for a single message.
        editable: whether users can change it. Cases of benchmarks and conversations of the playground cannot be
            changed.
        versions: numbers of its versions, the newest first.
        schema_violations: sentences about expected calls that do not fit the JSON Schemas of the tools.
    """

    tools: JsonValue
    message: str
    messages: list[JsonValue] | None
    expect: JsonValue
    system: str
    results: JsonValue
    start: JsonValue
    turns: int | None
    parallel: bool
    further: JsonValue
    group: str
    control: bool
    behaviour: str
    workspace: JsonValue
    settings: JsonValue
    editable: bool
    versions: list[int]
    schema_violations: list[str]


class CaseImportBody(BodySchema):
    """Test cases to import.

    Attributes:
        text: the cases as JSON Lines, JSON or YAML, at most 5,000.
        set: name of the set of new cases; "" for the set that each case names, or the default set.
    """

    text: Annotated[str, Field(min_length=1, max_length=2_500_000)]
    set: Annotated[str, Field(max_length=80)] = ""


class PrivacyBody(BodySchema):
    """Privacy of a set.

    Attributes:
        public: whether exports and bundles include its cases by default.
    """

    public: bool


class CaseExportQuery(QuerySchema):
    """Format and content of a file of test cases.

    Attributes:
        format: `jsonl` for JSON Lines, `yaml` for YAML.
        private: whether the file includes cases of private sets.
    """

    format: Literal["jsonl", "yaml"] = "jsonl"
    private: bool = False
