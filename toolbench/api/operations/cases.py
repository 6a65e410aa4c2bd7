"""Operations on test cases and their sets."""

import json
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from ninja import Query, Router, Status

from toolbench.api.authentication import LAUNCH, READ, record
from toolbench.api.documents.cases import (
    CaseBody,
    CaseDetailDocument,
    CaseDocument,
    CaseExportQuery,
    CaseImportBody,
    CaseSetDocument,
    NewCaseBody,
    PrivacyBody,
)
from toolbench.api.documents.figures import SentenceDocument
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.cases.drafts import CaseDraft, parse_draft, read_draft_values, render_message
from toolbench.lab.cases.edit import NewCaseOptions, UnknownCaseError, add_case, delete_case, edit_case
from toolbench.lab.cases.files import CaseImportError, import_cases, render_cases
from toolbench.lab.cases.pages import get_case_page, get_case_sets, get_editable_case_page
from toolbench.lab.models import Case
from toolbench.lab.scenarios.case_sets import CaseSetNotFoundError, set_privacy

router = Router()
# Fields of CaseBody that CaseDraft has with the same value.
DRAFT_PLAIN_FIELDS = ("system", "turns", "parallel", "group", "control", "behaviour")
# Fields of CaseBody that CaseDraft has as JSON text.
DRAFT_JSON_FIELDS = ("tools", "expect", "results", "start", "further", "workspace", "settings")


@router.get("/cases", response=list[CaseSetDocument], auth=READ)
def list_cases(request: HttpRequest) -> list[dict[str, Any]]:
    """List the sets that have a case, with their cases. Conversations of the playground are left out."""
    return [
        {name: getattr(row.set, name) for name in ("id", "name", "kind", "public")}
        | {"cases": [build_case_values(case, row.set.name) for case in row.cases]}
        for row in get_case_sets()
    ]


@router.post("/cases", response={201: CaseDocument}, auth=LAUNCH)
def create_case(request: HttpRequest, body: NewCaseBody) -> Status[dict[str, Any]]:
    """Save a new test case."""
    title, definition = parse_draft(build_case_draft(body))
    case = add_case(title, definition, NewCaseOptions(set=body.set))
    record(request, Action.ADDED, f"test case {case.slug}", f"/cases/{case.slug}/")
    return Status(201, build_case_values(case, case.set.name))


@router.post("/cases/import", response=SentenceDocument, auth=LAUNCH)
def bring_cases(request: HttpRequest, body: CaseImportBody) -> dict[str, str]:
    """Import all cases of a text, or none if one of them is not valid."""
    try:
        result = import_cases(body.text, body.set)
    except CaseImportError as error:
        raise ProblemError(422, f"{error} Nothing was imported.") from error
    record(request, Action.IMPORTED, f"test cases: {result.sentence}", "/cases/")
    return {"sentence": result.sentence}


@router.get("/cases/export", auth=READ)
def export_cases(request: HttpRequest, query: Query[CaseExportQuery]) -> HttpResponse:
    """Return the users' test cases as a file."""
    return HttpResponse(render_cases(query.format, private=query.private), content_type=f"application/{query.format}")


@router.patch("/cases/sets/{int:set_id}", response=SentenceDocument, auth=LAUNCH)
def change_privacy(request: HttpRequest, set_id: int, body: PrivacyBody) -> dict[str, str]:
    """Make a set of test cases public or private."""
    try:
        case_set = set_privacy(set_id, public=body.public)
    except CaseSetNotFoundError as error:
        raise Http404(str(error)) from error
    sentence = f"{case_set} is {'public' if case_set.public else 'private'}."
    record(request, Action.CHANGED, f"test case set {sentence}", "/cases/")
    return {"sentence": sentence}


@router.get("/cases/{slug:slug}", response=CaseDetailDocument, auth=READ)
def get_case(request: HttpRequest, slug: str) -> dict[str, Any]:
    """Return a test case."""
    try:
        page = get_case_page(slug)
    except UnknownCaseError as error:
        raise Http404(str(error)) from error
    return (
        build_case_values(page.case, page.case.set.name)
        | read_draft_values(page.draft)
        | {
            "editable": page.editable,
            "versions": [version.number for version in page.versions],
            "schema_violations": page.schema_violations,
        }
    )


@router.put("/cases/{slug:slug}", response=CaseDocument, auth=LAUNCH)
def change_case(request: HttpRequest, slug: str, body: CaseBody) -> dict[str, Any]:
    """Replace a test case by the fields of the body. It gets a new version if anything but the title has changed."""
    title, definition = parse_draft(build_case_draft(body))
    case = edit_case(_check_editable(slug), title, definition)
    record(request, Action.CHANGED, f"test case {slug}, version {case.current}", f"/cases/{slug}/")
    return build_case_values(case, case.set.name)


@router.delete("/cases/{slug:slug}", response={204: None}, auth=LAUNCH)
def remove_case(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a test case. Its runs and trials are kept."""
    delete_case(_check_editable(slug))
    record(request, Action.DELETED, f"test case {slug}", "/cases/")
    return Status(204, None)


def _check_editable(slug: str) -> str:
    """Return the slug unchanged if users can change the case.

    Raises:
        Http404: there is no such case, it is a benchmark case, or it is a conversation of the playground.
    """
    try:
        return get_editable_case_page(slug).case.slug
    except UnknownCaseError as error:
        raise Http404(str(error)) from error


def build_case_draft(body: CaseBody) -> CaseDraft:
    """Return the body as a draft, which `parse_draft` checks.

    Raises:
        ProblemError: the body has both a message and messages.
    """
    fields: dict[str, Any] = {name: getattr(body, name) for name in DRAFT_PLAIN_FIELDS}
    fields |= {name: "" if (value := getattr(body, name)) is None else json.dumps(value) for name in DRAFT_JSON_FIELDS}
    fields["message"] = render_message(body.message)
    if isinstance(body.further, str):  # a list with one text, since a text such as "- a" would be parsed as a list
        fields["further"] = json.dumps([body.further]) if body.further else ""
    if body.messages is not None:
        if body.message:
            raise ProblemError(422, "Give message or messages, not both.")
        fields["message"] = json.dumps(body.messages)
    return CaseDraft(title=body.title, **fields)


def build_case_values(case: Case, set_name: str) -> dict[str, Any]:
    """Return the values of a CaseDocument."""
    return {"slug": case.slug, "title": case.title, "set": set_name, "version": case.current}
