"""Review of drafts from traffic: list, acceptance and rejection."""

import json
from collections.abc import Iterable
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Count

from toolbench.evals.user_cases.definition import UserCase
from toolbench.evals.user_cases.parse import parse_case
from toolbench.lab.cases.edit import NewCaseOptions, add_cases
from toolbench.lab.models import TrafficDraft

DRAFTS_PER_PAGE = 100
DEFAULT_SET_NAME = "Cases from traffic"


@dataclass(frozen=True, slots=True)
class DraftRow:
    """Draft with the parts of its case that the list shows.

    Attributes:
        message: the last user message.
        history_length: number of messages before `message`.
        tools: names of the tools.
        calls: name and JSON arguments of each expected call; empty if no call is expected.
    """

    draft: TrafficDraft
    message: str
    history_length: int
    tools: tuple[str, ...]
    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DraftPage:
    """One page of the drafts in a state.

    Attributes:
        counts: number of drafts by state; states without a draft are missing.
        page: number of the page, from 1.
        pages: number of pages, at least 1.
    """

    state: str
    rows: tuple[DraftRow, ...]
    counts: dict[str, int]
    page: int
    pages: int


def get_draft_page(state: str, page: int) -> DraftPage:
    """Return a page of drafts, the most frequent requests first, with two queries.

    Args:
        state: value of `TrafficDraft.State`; any other text stands for open drafts.
        page: number of the page, from 1. A smaller number stands for the first page, and one that is too large for the
            last page.
    """
    state = state if state in TrafficDraft.State.values else TrafficDraft.State.OPEN.value
    counts = dict(TrafficDraft.objects.order_by().values_list("state").annotate(Count("pk")))
    pages = max(1, -(-counts.get(state, 0) // DRAFTS_PER_PAGE))
    page = min(max(page, 1), pages)
    first = (page - 1) * DRAFTS_PER_PAGE
    drafts = TrafficDraft.objects.filter(state=state).select_related("case")[first : first + DRAFTS_PER_PAGE]
    return DraftPage(state, tuple(map(_build_row, drafts)), counts, page, pages)


def _build_row(draft: TrafficDraft) -> DraftRow:
    case = _parse_definition(draft)
    return DraftRow(
        draft=draft,
        message=str(case.messages[-1]["content"]),
        history_length=len(case.messages) - 1,
        tools=tuple(tool["function"]["name"] for tool in case.tools),
        calls=tuple((call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in case.expect.calls),
    )


def _parse_definition(draft: TrafficDraft) -> UserCase:
    return parse_case(json.loads(draft.definition))


def accept_drafts(ids: Iterable[int] | None, set_name: str = "") -> int:
    """Create cases from open drafts and return the number of cases.

    Args:
        ids: primary keys of drafts; None for all open drafts.
        set_name: name of the set of the new cases, empty for DEFAULT_SET_NAME. A set that does not exist is
            created as a private set.

    Raises:
        InvalidFieldsError: the name belongs to a set of another kind, or is reserved for one.
    """
    with transaction.atomic():
        drafts = list(_lock_open_drafts(ids))
        options = NewCaseOptions(set=set_name.strip() or DEFAULT_SET_NAME)
        cases = add_cases([(draft.title, _parse_definition(draft), options) for draft in drafts])
        for draft, case in zip(drafts, cases, strict=True):
            draft.state, draft.case = TrafficDraft.State.ACCEPTED, case
        TrafficDraft.objects.bulk_update(drafts, ["state", "case"], batch_size=DRAFTS_PER_PAGE)
    return len(drafts)


def reject_drafts(ids: Iterable[int] | None) -> int:
    """Reject open drafts and return their number. A later import of the same requests creates no new drafts.

    Args:
        ids: primary keys of drafts; None for all open drafts.
    """
    with transaction.atomic():
        draft_ids = [draft.pk for draft in _lock_open_drafts(ids)]
        return TrafficDraft.objects.filter(pk__in=draft_ids).update(state=TrafficDraft.State.REJECTED)


def _lock_open_drafts(ids: Iterable[int] | None) -> Iterable[TrafficDraft]:
    drafts = TrafficDraft.objects.select_for_update().filter(state=TrafficDraft.State.OPEN)
    return drafts if ids is None else drafts.filter(pk__in=list(ids))
