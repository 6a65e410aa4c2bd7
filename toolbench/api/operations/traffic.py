"""Operations on drafts of test cases from recorded traffic: list, import, accept and reject."""

from typing import Annotated, Any, Literal

from django.http import HttpRequest
from ninja import Query, Router
from pydantic import Field

from toolbench.api.authentication import LAUNCH, READ, record
from toolbench.api.documents.described import Schema
from toolbench.api.documents.figures import BodySchema, Id, QuerySchema, SentenceDocument
from toolbench.lab.accounts.audit import Action
from toolbench.lab.interchange.traffic.drafts import import_traffic
from toolbench.lab.interchange.traffic.review import DraftRow, accept_drafts, get_draft_page, reject_drafts

router = Router()
DraftState = Literal["open", "accepted", "rejected"]


class TrafficDraftDocument(Schema):
    """Draft of a test case.

    Attributes:
        message: the last message of the user.
        history: number of messages before `message`.
        tools: names of the tools.
        calls: name and JSON arguments of each expected call; [] if no call is expected.
        count: number of equal requests.
        answers: number of different answers; the most frequent one is expected.
        model: name of the model that gave the expected answer.
        masked: whether a secret was masked.
        file_name: name of the imported file or text.
    """

    id: int
    state: DraftState
    title: str
    message: str
    history: int
    tools: list[str]
    calls: list[tuple[str, str]]
    count: int
    answers: int
    model: str
    masked: bool
    file_name: str


class TrafficDraftListDocument(Schema):
    """Page of drafts, the most frequent requests first.

    Attributes:
        page: number of the page, from 1.
        pages: number of pages.
        counts: number of drafts by state; states without a draft are missing.
    """

    items: list[TrafficDraftDocument]
    page: int
    pages: int
    counts: dict[str, int]


class TrafficDraftQuery(QuerySchema):
    """State of the drafts, and page of their list.

    Attributes:
        state: state of the drafts.
        page: number of the page, from 1; a number beyond the last page stands for the last page.
    """

    state: DraftState = "open"
    page: Annotated[int, Field(ge=1, le=1_000_000)] = 1


class TrafficBody(BodySchema):
    """Recorded traffic to import.

    Attributes:
        text: the traffic in a format that docs/cases.md lists.
        file_name: name that the drafts show as their source.
    """

    text: Annotated[str, Field(min_length=1, max_length=2_400_000)]
    file_name: Annotated[str, Field(max_length=200)] = "API"


class DraftReviewBody(BodySchema):
    """Acceptance or rejection of open drafts.

    Attributes:
        action: `accept` to make test cases, `reject` to keep the same requests from becoming drafts again.
        ids: ids of drafts; those that are not open are ignored. Null for all open drafts.
        set: name of the set of the new cases; "" for "Cases from traffic".
    """

    action: Literal["accept", "reject"]
    ids: Annotated[list[Id], Field(min_length=1, max_length=10_000)] | None
    set: Annotated[str, Field(max_length=80)] = ""


@router.get("/cases/drafts", response=TrafficDraftListDocument, auth=READ)
def list_traffic_drafts(request: HttpRequest, query: Query[TrafficDraftQuery]) -> dict[str, Any]:
    """List the drafts in a state, 100 a page."""
    page = get_draft_page(query.state, query.page)
    names = ("page", "pages", "counts")
    return {name: getattr(page, name) for name in names} | {"items": [_build_draft_values(row) for row in page.rows]}


@router.post("/cases/drafts/import", response=SentenceDocument, auth=LAUNCH)
def import_recorded_traffic(request: HttpRequest, body: TrafficBody) -> dict[str, str]:
    """Store a draft for each different request of recorded traffic, unless the request has a draft already."""
    result = import_traffic(body.text.encode("utf-8", "replace"), body.file_name)
    record(request, Action.IMPORTED, f"recorded traffic: {result.sentence}", "/cases/drafts/")
    reasons = [f"Skipped {group.count:,}: {group.reason}." for group in result.skipped]
    return {"sentence": " ".join([result.sentence, *reasons])}


@router.post("/cases/drafts/review", response=SentenceDocument, auth=LAUNCH)
def review_drafts(request: HttpRequest, body: DraftReviewBody) -> dict[str, str]:
    """Accept open drafts as test cases, or reject them. An error changes none of them."""
    is_accepted = body.action == "accept"
    count = accept_drafts(body.ids, body.set) if is_accepted else reject_drafts(body.ids)
    sentence = f"Drafts {'accepted' if is_accepted else 'rejected'}: {count:,}."
    record(request, Action.CHANGED, f"drafts from traffic: {sentence}", "/cases/drafts/")
    return {"sentence": sentence}


def _build_draft_values(row: DraftRow) -> dict[str, Any]:
    """Return the values of a TrafficDraftDocument."""
    draft = row.draft
    columns = {name: getattr(draft, name) for name in ("id", "state", "title", "count", "model", "masked", "file_name")}
    shown = {name: getattr(row, name) for name in ("message", "tools", "calls")}
    return columns | shown | {"history": row.history_length, "answers": draft.answer_count}
