"""Data of the playground's pages: the list of conversations, and one conversation with its trials."""

from collections import defaultdict
from dataclasses import dataclass, replace

from toolbench.evals.user_cases.scenario import UserCaseScenario
from toolbench.lab.cases.conversations import REMOVED_TEXT, MessageSettings, copy_settings, load_transcript
from toolbench.lab.cases.drafts import CaseDraft, build_draft, render_json
from toolbench.lab.cases.edit import UnknownCaseError, get_case
from toolbench.lab.models import Case, CaseSet, Cell, Run, Trial
from toolbench.lab.results.trial_list.index import choose_mark
from toolbench.lab.scenarios.catalogue import load_scenario

MAX_CONVERSATIONS = 50
MAX_TRIALS = 200  # newest trials of one conversation


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """Conversation in the list of conversations.

    Attributes:
        models: names of the models to which its messages were sent, that of the newest run first.
    """

    case: Case
    models: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ConversationTrial:
    """Trial of a conversation.

    Attributes:
        message: number of the message, from 1; a message that was changed and sent again has another number.
        index: number of the repeat, from 1.
        mark: outcome, or `running` or `queued` without one.
    """

    pk: int
    message: int
    index: int
    mark: str
    model_name: str


@dataclass(frozen=True, slots=True)
class ConversationPage:
    """Conversation of the playground.

    Attributes:
        trials: its newest trials, at most MAX_TRIALS, the oldest of them first.
        shown: the trial that the page shows and after which the conversation goes on; None without trials.
        draft: fields for the next message, or for a message that was not sent or not answered yet.
        settings: settings of the shown trial; the default settings if there is none.
        is_sent: whether the newest message was sent.
    """

    case: Case
    trials: tuple[ConversationTrial, ...]
    shown: Trial | None
    draft: CaseDraft
    settings: MessageSettings
    is_sent: bool

    @property
    def is_waiting(self) -> bool:
        """Return whether a trial has not ended, so that no message can be sent yet."""
        return any(trial.mark in (Trial.State.QUEUED, Trial.State.RUNNING) for trial in self.trials)

    @property
    def removed_text(self) -> str:
        """Return why no message can follow the shown trial, whose bodies were removed; "" if one can."""
        if self.shown is None or self.shown.bodies_removed_at is None:
            return ""
        return REMOVED_TEXT.format(id=self.shown.pk, rule=self.shown.bodies_rule)


def get_conversations() -> tuple[ConversationRow, ...]:
    """Return the newest conversations, at most MAX_CONVERSATIONS, with two queries."""
    rows = Case.objects.filter(set__kind=CaseSet.Kind.DRAFT, deleted_at=None).order_by("-pk")
    cases = tuple(rows[:MAX_CONVERSATIONS])
    models_by_slug: dict[str, dict[str, None]] = defaultdict(dict)
    cells = Cell.objects.filter(scenario__in=[case.slug for case in cases], run__deleted_at=None).order_by("-run_id")
    for slug, name in cells.values_list("scenario", "config__model_name"):
        models_by_slug[slug][name] = None
    return tuple(ConversationRow(case, tuple(models_by_slug[case.slug])) for case in cases)


def get_conversation(slug: str, trial_id: int | None = None) -> ConversationPage:
    """Return the page of a conversation.

    Args:
        slug: slug of its case.
        trial_id: the trial to show; None for the newest one.

    Raises:
        UnknownCaseError: there is no such conversation, no such trial among its newest MAX_TRIALS, or, for an imported
            trial, no such version of the conversation.
    """
    case = get_case(slug)
    if case.set.kind != CaseSet.Kind.DRAFT:
        raise UnknownCaseError(f"{case} is no conversation of the playground.")
    trials = _list_trials(slug)
    newest = trials[-1] if trials else None
    shown = newest if trial_id is None else next((trial for trial in trials if trial.pk == trial_id), None)
    if trial_id is not None and shown is None:
        raise UnknownCaseError(f"The conversation {slug} has no trial {trial_id}.")
    is_sent = newest is not None and newest.scenario_version == case.current
    return ConversationPage(
        case=case,
        trials=tuple(_build_trial(trial) for trial in trials),
        shown=shown,
        draft=_build_next_draft(case, shown, is_sent=is_sent),
        settings=copy_settings(shown.config) if shown else MessageSettings(),
        is_sent=is_sent,
    )


def _list_trials(slug: str) -> list[Trial]:
    cells = Cell.objects.filter(scenario=slug, run__deleted_at=None, run__purpose=Run.PLAYGROUND)
    trials = Trial.objects.filter(cell__in=list(cells.values_list("pk", flat=True))).select_related("config")
    newest = trials.order_by("-pk").defer("rendered_prompt", "final_text", "verdict")[:MAX_TRIALS]
    return list(reversed(newest))


def _build_trial(trial: Trial) -> ConversationTrial:
    name = trial.config.model_name
    return ConversationTrial(trial.pk, trial.scenario_version, trial.index, choose_mark(trial), name)


def _build_next_draft(case: Case, shown: Trial | None, *, is_sent: bool) -> CaseDraft:
    """Return the fields of the form.

    - If the newest message was not sent: the fields of this message.
    - If the shown trial has not ended, had no answer, or its bodies were removed: the fields of its message.
    - Otherwise: an empty next message, with the tools and the other fields of the shown trial's message.

    Raises:
        UnknownCaseError: the version of the conversation with this message does not exist here.
    """
    version = shown.scenario_version if shown and is_sent else case.current
    try:
        scenario = load_scenario(case.slug, version)
    except KeyError:
        raise UnknownCaseError(f"The conversation {case.slug} has no version {version}.") from None
    assert isinstance(scenario, UserCaseScenario)
    draft = build_draft(case.title, scenario.case)
    if shown is None:
        return draft
    if not is_sent:
        return replace(draft, message=str(scenario.case.messages[-1]["content"]))
    if shown.state != Trial.State.DONE or shown.bodies_removed_at is not None:
        return draft
    transcript = load_transcript(case.slug, shown.pk)
    start = render_json(transcript.state) if transcript.state else ""
    if transcript.unanswered:
        further = render_json(list(transcript.further)) if transcript.further else ""
        return replace(draft, message=transcript.unanswered, further=further, start=start)
    return CaseDraft(
        title=case.title,
        tools=draft.tools,
        system=draft.system,
        results=draft.results,
        start=start,
        parallel=draft.parallel,
        workspace=draft.workspace,
        settings=draft.settings,
    )
