"""Operations on test cases and their sets."""

import json
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router, Schema, Status
from pydantic import Field, JsonValue

from toolbench.api.authentication import LAUNCH, READ, record
from toolbench.api.documents.figures import BodySchema, QuerySchema, SentenceDocument
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.cases.drafts import CaseDraft, parse_draft, read_draft_values
from toolbench.lab.cases.edit import (
    DEFAULT_SET_NAME,
    NewCaseOptions,
    UnknownCaseError,
    add_case,
    delete_case,
    edit_case,
)
from toolbench.lab.cases.files import CaseImportError, import_cases, render_cases
from toolbench.lab.cases.pages import get_case_page, get_case_sets, get_editable_case_page
from toolbench.lab.models import Case
from toolbench.lab.scenarios.case_sets import CaseSetNotFoundError, set_privacy

router = Router()
Title = Annotated[str, Field(max_length=120)]
SetName = Annotated[str, Field(min_length=1, max_length=80)]
Words = Annotated[str, Field(max_length=200_000)]
DRAFT_PLAIN = ("message", "system", "turns", "parallel", "group", "control", "behaviour")
DRAFT_VALUES = ("tools", "expect", "results", "start", "further", "workspace", "settings")


class CaseDocument(Schema):
    """A test case of the list."""

    slug: str
    title: str
    set: str
    version: int


class CaseSetDocument(Schema):
    """A set of test cases.

    Attributes:
        public: whether its cases go into exports and bundles.
    """

    id: int
    name: str
    kind: str
    public: bool
    cases: list[CaseDocument]


class CaseBody(BodySchema):
    """A test case as the form has it.

    Attributes:
        tools: a list of tools in OpenAI's form.
        message: the user's message; `messages` in its place for a conversation.
        expect: what is expected: a call, several calls or checks (docs/cases.md).
        results: what tools return, by name.
        start: the state before the first call.
        turns: the most turns.
        further: later messages of the user.
        control: whether it only shows that the model answers; a control expects no call.
        behaviour: the behaviour of a built-in scenario that it tests, "" for none.
        workspace: `{id, writable}` of the workspace that `state_get` and `state_patch` work on.
        settings: settings of the loop.
    """

    title: Title = ""
    tools: JsonValue = None
    message: Words = ""
    messages: Annotated[list[JsonValue], Field(min_length=1, max_length=200)] | None = None
    expect: JsonValue = None
    system: Words = ""
    results: JsonValue = None
    start: JsonValue = None
    turns: Annotated[int, Field(ge=1, le=1_000)] | None = None
    parallel: bool = False
    further: JsonValue = None
    group: Words = ""
    control: bool = False
    behaviour: Words = ""
    workspace: JsonValue = None
    settings: JsonValue = None


class NewCaseBody(CaseBody):
    """A new test case and the set that it goes to."""

    set: SetName = DEFAULT_SET_NAME


class CaseDetailDocument(CaseDocument):
    """A test case with its parts, as PUT takes them.

    Attributes:
        messages: the messages where there are several; `message` is "" then.
        editable: whether it is one of the user's own.
        schema_violations: where the expectation does not fit the tools.
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
    """Cases as JSON Lines, JSON or YAML, and the set for new ones; "" for the set that each names."""

    text: Annotated[str, Field(min_length=1, max_length=2_500_000)]
    set: Annotated[str, Field(max_length=80)] = ""


class PrivacyBody(BodySchema):
    """Whether the cases of a set go into exports and bundles."""

    public: bool


class CaseExportQuery(QuerySchema):
    """The format of the file, and whether cases of private sets are in it."""

    format: Literal["jsonl", "yaml"] = "jsonl"
    private: bool = False


@router.get("/cases", response=list[CaseSetDocument], auth=READ)
def list_cases(request: HttpRequest) -> list[dict[str, Any]]:
    """List the sets with their cases."""
    return [
        {name: getattr(row.set, name) for name in ("id", "name", "kind", "public")}
        | {"cases": [_build_case(case, row.set.name) for case in row.cases]}
        for row in get_case_sets()
    ]


@router.post("/cases", response={201: CaseDocument}, auth=LAUNCH)
def create_case(request: HttpRequest, body: NewCaseBody) -> Status[dict[str, Any]]:
    """Save a new test case."""
    title, definition = parse_draft(_build_draft(body))
    case = add_case(title, definition, NewCaseOptions(set=body.set))
    record(request, Action.ADDED, f"test case {case.slug}", f"/cases/{case.slug}/")
    return Status(201, _build_case(case, case.set.name))


@router.post("/cases/import", response=SentenceDocument, auth=LAUNCH)
def bring_cases(request: HttpRequest, body: CaseImportBody) -> dict[str, str]:
    """Import cases, all or none."""
    try:
        result = import_cases(body.text, body.set)
    except CaseImportError as refused:
        raise ProblemError(422, f"{refused} Nothing was imported.") from refused
    record(request, Action.IMPORTED, f"test cases: {result.sentence}", "/cases/")
    return {"sentence": result.sentence}


@router.get("/cases/export", auth=READ)
def export_cases(request: HttpRequest, query: Query[CaseExportQuery]) -> HttpResponse:
    """Return the user's own cases as a file."""
    return HttpResponse(render_cases(query.format, private=query.private), content_type=f"application/{query.format}")


@router.patch("/cases/sets/{int:set_id}", response=SentenceDocument, auth=LAUNCH)
def change_privacy(request: HttpRequest, set_id: int, body: PrivacyBody) -> dict[str, str]:
    """Make a set public or private."""
    try:
        case_set = set_privacy(set_id, public=body.public)
    except CaseSetNotFoundError as missing:
        raise Http404(str(missing)) from missing
    sentence = f"{case_set} is {'public' if case_set.public else 'private'}."
    record(request, Action.CHANGED, f"test case set {sentence}", "/cases/")
    return {"sentence": sentence}


@router.get("/cases/{slug:slug}", response=CaseDetailDocument, auth=READ)
def get_case(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return a test case."""
    try:
        page = get_case_page(slug)
    except UnknownCaseError as missing:
        raise Http404(str(missing)) from missing
    return (
        _build_case(page.case, page.case.set.name)
        | read_draft_values(page.draft)
        | {
            "editable": page.editable,
            "versions": [version.number for version in page.versions],
            "schema_violations": page.schema_violations,
        }
    )


@router.put("/cases/{slug:slug}", response=CaseDocument, auth=LAUNCH)
def change_case(request: HttpRequest, slug: str, body: CaseBody) -> dict[str, Any]:
    """Save a test case, with a new version if anything but the title has changed."""
    title, definition = parse_draft(_build_draft(body))
    case = edit_case(_find_editable(slug), title, definition)
    record(request, Action.CHANGED, f"test case {slug}, version {case.current}", f"/cases/{slug}/")
    return _build_case(case, case.set.name)


@router.delete("/cases/{slug:slug}", response={204: None}, auth=LAUNCH)
def remove_case(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a test case. Its runs and trials are kept."""
    delete_case(_find_editable(slug))
    record(request, Action.DELETED, f"test case {slug}", "/cases/")
    return Status(204, None)


def _find_editable(slug: str) -> str:
    try:
        return get_editable_case_page(slug).case.slug
    except UnknownCaseError as missing:
        raise Http404(str(missing)) from missing


def _build_draft(body: CaseBody) -> CaseDraft:
    """Return the fields of the form; the lab checks them."""
    fields: dict[str, Any] = {name: getattr(body, name) for name in DRAFT_PLAIN}
    fields |= {name: "" if (value := getattr(body, name)) is None else json.dumps(value) for name in DRAFT_VALUES}
    if body.messages is not None:
        if body.message:
            raise ProblemError(422, "Give message or messages, not both.")
        fields["message"] = json.dumps(body.messages)
    return CaseDraft(title=body.title, **fields)


def _build_case(case: Case, set_name: str) -> dict[str, Any]:
    """Return the values of a CaseDocument."""
    return {"slug": case.slug, "title": case.title, "set": set_name, "version": case.current}
