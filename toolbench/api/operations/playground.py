"""Operations on conversations of the playground: start, continue, read, delete, and run as a test case."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from django.db import transaction
from django.http import Http404, HttpRequest
from ninja import Query, Router, Status

from toolbench.api.authentication import LAUNCH, READ, get_user, record
from toolbench.api.documents.cases import CaseDocument
from toolbench.api.documents.conversations import (
    CaseTrialsBody,
    ConversationDocument,
    ConversationQuery,
    ConversationSummaryDocument,
    FirstMessageBody,
    MessageBody,
    NextMessageBody,
    SentMessageDocument,
)
from toolbench.api.documents.runs import RunDocument
from toolbench.api.operations.cases import build_case_draft, build_case_values
from toolbench.api.operations.runs import IDEMPOTENCY_KEY
from toolbench.api.problems import ProblemError
from toolbench.lab.accounts.audit import Action
from toolbench.lab.cases.conversations import (
    MessageSettings,
    build_case_request,
    build_draft_to_send_again,
    build_message_request,
    load_transcript,
    parse_message,
    save_as_case,
    save_message,
)
from toolbench.lab.cases.drafts import CaseDraft
from toolbench.lab.cases.edit import UnknownCaseError, delete_case
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.models import Case, Run, Trial
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.results.playground import ConversationPage, get_conversation, get_conversations
from toolbench.lab.runs.idempotent_launch import use_launch_key
from toolbench.lab.runs.launch import launch

router = Router()
_DRAFT_FIELDS = {field.name for field in fields(CaseDraft)}
_SETTING_FIELDS = tuple(field.name for field in fields(MessageSettings))


@dataclass(frozen=True, slots=True)
class _Message:
    """Message to save and send.

    Attributes:
        content: title and case, as `parse_message` returns them.
        settings: settings of the trial `source_trial_id`, or the defaults; settings in the request body replace them.
        source_trial_id: id of the trial whose run gives the settings that a body cannot contain, such as overrides;
            None for the defaults.
    """

    content: tuple[str, Any]
    settings: MessageSettings
    source_trial_id: int | None


@router.get("/conversations", response=list[ConversationSummaryDocument], auth=READ)
def list_conversations(request: HttpRequest) -> list[dict[str, Any]]:
    """List the newest 50 conversations of the playground."""
    return [
        {"slug": row.case.slug, "title": row.case.title, "messages": row.case.current, "models": row.models}
        for row in get_conversations()
    ]


@router.post("/conversations", response={200: SentMessageDocument, 201: SentMessageDocument}, auth=LAUNCH)
def start_conversation(
    request: HttpRequest, body: FirstMessageBody, idempotency_key: str = IDEMPOTENCY_KEY
) -> Status[dict[str, Any]]:
    """Start a conversation.

    A repeated request with the same header Idempotency-Key gets 200 and the same message.
    """

    def build_message() -> _Message:
        draft, settings = CaseDraft(), MessageSettings()
        if body.from_trial is not None:
            draft, settings, _ = build_draft_to_send_again(body.from_trial, body.trials)
        return _Message(parse_message(_change_draft(draft, body), "", None), settings, body.from_trial)

    return _send_once(request, body, idempotency_key, "", build_message)


@router.get("/conversations/{slug:slug}", response=ConversationDocument, auth=READ)
def read_conversation(request: HttpRequest, slug: str, query: Query[ConversationQuery]) -> dict[str, Any]:
    """Return a conversation with the history up to an answer. GET /trials/{trial_id} has the steps of the answer."""
    page = _get_conversation_or_404(slug, query.trial)
    shown = page.shown
    if shown is not None and (shown.state != Trial.State.DONE or shown.bodies_removed_at is not None):
        shown = None
    with _explain_refusals():
        transcript = load_transcript(slug, shown.pk) if shown else None
    unanswered = [{"role": "user", "content": transcript.unanswered}] if transcript and transcript.unanswered else []
    return {
        "slug": slug,
        "title": page.case.title,
        "messages": page.case.current,
        "waiting": page.is_waiting,
        "trials": [
            {"id": trial.pk, "outcome": trial.mark, "model": trial.model_name}
            | {name: getattr(trial, name) for name in ("message", "index")}
            for trial in page.trials
        ],
        "trial": page.shown.pk if page.shown else None,
        "history": [*transcript.messages, *unanswered] if transcript else None,
        "state": transcript.state if transcript else None,
    }


@router.post(
    "/conversations/{slug:slug}/messages", response={200: SentMessageDocument, 201: SentMessageDocument}, auth=LAUNCH
)
def send_next_message(
    request: HttpRequest, slug: str, body: NextMessageBody, idempotency_key: str = IDEMPOTENCY_KEY
) -> Status[dict[str, Any]]:
    """Send the next message; 409 without a previous answer, and while its trial has not ended.

    A repeated request with the same header Idempotency-Key gets 200 and the same message.
    """
    if body.messages is not None:
        raise ProblemError(422, "Give the next message in message. The conversation has the messages before it.")

    def build_message() -> _Message:
        page = _get_conversation_or_404(slug, body.trial)
        if page.shown is None or page.shown.state != Trial.State.DONE:
            raise ProblemError(409, "There is no answer that the message could follow. Wait until the trial has ended.")
        draft = replace(_change_draft(page.draft, body), message=body.message or page.draft.message)
        return _Message(parse_message(draft, slug, page.shown.pk), page.settings, page.shown.pk)

    return _send_once(request, body, idempotency_key, slug, build_message)


@router.delete("/conversations/{slug:slug}", response={204: None}, auth=LAUNCH)
def delete_conversation(request: HttpRequest, slug: str) -> Status[None]:
    """Delete a conversation. Its runs and trials are kept."""
    delete_case(_get_conversation_or_404(slug).case.slug)
    record(request, Action.DELETED, f"conversation {slug}", "/playground/")
    return Status(204, None)


@router.post(
    "/conversations/{slug:slug}/trials/{int:trial_id}/case",
    response={200: CaseDocument, 201: CaseDocument},
    auth=LAUNCH,
)
def save_answer_as_case(request: HttpRequest, slug: str, trial_id: int) -> Status[dict[str, Any]]:
    """Save an answer as a test case that expects its calls; 200 and the same case if it was saved before.

    422 if the trial has not ended, neither passed nor failed, or lost its bodies.
    """
    _get_conversation_or_404(slug, trial_id)
    with _explain_refusals():
        case, is_new = _save_case(request, trial_id)
    return Status(201 if is_new else 200, build_case_values(case, case.set.name))


@router.post(
    "/conversations/{slug:slug}/trials/{int:trial_id}/runs",
    response={200: RunDocument, 201: RunDocument},
    auth=LAUNCH,
)
def run_answer_as_case(
    request: HttpRequest, slug: str, trial_id: int, body: CaseTrialsBody, idempotency_key: str = IDEMPOTENCY_KEY
) -> Status[Run]:
    """Save an answer as a test case, unless it was saved before, and run it with the settings of the answer."""
    _get_conversation_or_404(slug, trial_id)
    values = {"trial": trial_id, "trials": body.trials}
    with _explain_refusals(), transaction.atomic(), use_launch_key(get_user(request), idempotency_key, values) as key:
        if key.run is not None:
            return Status(200, key.run)
        case, _ = _save_case(request, trial_id)
        run = key.run = _launch(request, build_case_request(case, trial_id, body.trials), body.agreed)
    return Status(201, run)


def _send_once(
    request: HttpRequest, body: MessageBody, key: str, slug: str, build_message: Callable[[], _Message]
) -> Status[dict[str, Any]]:
    """Save a message and launch its run, once for each key.

    If the launch is refused, the message is not saved.

    Args:
        request: the request.
        body: its body, which has the settings.
        key: the idempotency key; "" for none.
        slug: slug of the conversation; "" for a new one.
        build_message: returns the message; it is called unless the key was used before.

    Returns:
        Status 201 and the message; status 200 and the earlier message if the key was used before.
    """
    sent_settings = {name: value for name in _SETTING_FIELDS if (value := getattr(body, name)) is not None}
    values = body.model_dump(mode="json", exclude={"agreed"}) | {"slug": slug}
    with _explain_refusals(), transaction.atomic(), use_launch_key(get_user(request), key, values) as launch_key:
        is_new = launch_key.run is None
        if launch_key.run is None:
            message = build_message()
            case = save_message(*message.content, slug=slug)
            subject = f"conversation {case.slug}" + (f", message {case.current}" if slug else "")
            record(request, Action.CHANGED if slug else Action.ADDED, subject, f"/playground/{case.slug}/")
            run_request = build_message_request(
                case, replace(message.settings, **sent_settings), message.source_trial_id
            )
            launch_key.run = _launch(request, run_request, body.agreed)
        run = launch_key.run
    return Status(201 if is_new else 200, _build_sent_message(run))


def _launch(request: HttpRequest, run_request: RunRequest | None, agreed: int) -> Run:
    """Launch a run and add it to the audit list.

    Args:
        request: the request.
        run_request: the run; None if no model is named, or the model of the trial was deleted.
        agreed: the confirmed number of paid requests.

    Raises:
        ProblemError: there is no `run_request` (422).
        LaunchError: as in `launch`.
        PaidRequestsUnconfirmedError: as in `launch`.
    """
    if run_request is None:
        raise ProblemError(422, "Give model, the id of a model.")
    run = launch(run_request, owner=get_user(request), confirmed_requests=agreed)
    record(request, Action.LAUNCHED, f"run {run.pk}", f"/runs/{run.pk}/")
    return run


def _save_case(request: HttpRequest, trial_id: int) -> tuple[Case, bool]:
    """Save a trial as a test case, unless it was saved before; return the case, and whether it is new."""
    case, is_new = save_as_case(trial_id)
    if is_new:
        record(request, Action.ADDED, f"test case {case.slug}", f"/cases/{case.slug}/")
    return case, is_new


def _change_draft(draft: CaseDraft, body: MessageBody) -> CaseDraft:
    """Return the draft with the fields that the body has; other fields keep their values."""
    body_draft = build_case_draft(body)
    names = {"message" if name == "messages" else name for name in body.model_fields_set}
    return replace(draft, **{name: getattr(body_draft, name) for name in names & _DRAFT_FIELDS})


def _build_sent_message(run: Run) -> dict[str, Any]:
    """Return the values of a SentMessageDocument."""
    slug, version = run.cells.values_list("scenario", "scenario_version")[0]
    trials = list(run.trials.order_by("index").values_list("pk", flat=True))
    return {"conversation": slug, "message": version, "run": run, "trials": trials}


def _get_conversation_or_404(slug: str, trial_id: int | None = None) -> ConversationPage:
    try:
        return get_conversation(slug, trial_id)
    except UnknownCaseError as error:
        raise Http404(str(error)) from error


@contextmanager
def _explain_refusals() -> Iterator[None]:
    """Convert CaseNotCreatedError and UnknownCaseError of the block.

    Raises:
        ProblemError: the trial can neither be continued nor saved as a case (422).
        Http404: the conversation does not exist or was deleted.
    """
    try:
        yield
    except CaseNotCreatedError as error:
        raise ProblemError(422, str(error)) from error
    except UnknownCaseError as error:
        raise Http404(str(error)) from error
