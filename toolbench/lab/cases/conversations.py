"""Conversations of the playground: each is a draft case whose versions are its messages, and each message is a run."""

from dataclasses import dataclass, replace

from django.db.models import Exists, OuterRef

from toolbench.evals.few_shot import load_sets
from toolbench.evals.user_cases.copying import ScenarioNotCopiedError, copy_scenario, is_copyable
from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.evals.user_cases.scenario import UserCaseScenario
from toolbench.lab.cases.drafts import MAX_TITLE_CHARS, CaseDraft, DraftError, build_draft, parse_draft, render_json
from toolbench.lab.cases.edit import DRAFT_SET_NAME, NewCaseOptions, add_case, edit_case
from toolbench.lab.cases.from_trial import (
    ANY_ANSWER,
    NO_CALL,
    CaseNotCreatedError,
    build_draft_from_trial,
    load_trial_scenario,
)
from toolbench.lab.cases.transcript import Transcript, build_transcript
from toolbench.lab.models import Case, CaseSet, Cell, Run, RunConfig, Trial
from toolbench.lab.planning.run_request import LaunchError, RunRequest
from toolbench.lab.traces.step_facts import to_column_text

MAX_RUN_TITLE_CHARS = 180
REMOVED_TEXT = (
    "The conversation cannot go on after trial {id}: its answer was removed by the rule “{rule}”. Start a new "
    "conversation."
)
SEND_AGAIN_NOTE = "Filled in from trial {id}. Change what you like; the trial and its run stay as they are."


@dataclass(frozen=True, slots=True)
class MessageSettings:
    """Settings with which a message is sent.

    Attributes:
        model: id of the model; None if none is chosen yet.
        trials: how many times the message is sent.
    """

    model: int | None = None
    profile: str = "default"
    strategy: str = "production"
    method: str = "native"
    stream: bool = False
    trials: int = 1


def copy_settings(config: RunConfig, trials: int = 1) -> MessageSettings:
    """Return the settings of a configuration; the method is `auto` if it was chosen automatically."""
    return MessageSettings(
        model=config.model_id,
        profile=config.profile,
        strategy=config.strategy,
        method="auto" if config.routing else config.method,
        stream=config.stream,
        trials=trials,
    )


def load_transcript(slug: str, trial_id: int) -> Transcript:
    """Return the transcript of a trial of a conversation.

    Raises:
        DraftError: the conversation has no such trial.
        CaseNotCreatedError: the version of the conversation that the trial answered no longer exists, or the bodies of
            the trial were removed.
    """
    trials = Trial.objects.filter(pk=trial_id, scenario=slug, run__deleted_at=None).prefetch_related("steps__body")
    trial = trials.first()
    scenario = None if trial is None else load_trial_scenario(trial)
    if trial is None or not isinstance(scenario, UserCaseScenario):
        raise DraftError({"message": [f"This conversation has no trial {trial_id}. Open the conversation again."]})
    if trial.bodies_removed_at is not None:
        raise CaseNotCreatedError(REMOVED_TEXT.format(id=trial_id, rule=trial.bodies_rule))
    return build_transcript(trial, scenario.case)


def parse_message(draft: CaseDraft, slug: str, trial_id: int | None) -> tuple[str, UserCase]:
    """Return title and case of a message.

    If the draft expects nothing, any answer passes. If it has no tools either, the case is a control, which expects no
    call.

    Args:
        draft: the fields of the form. If `trial_id` is given, `draft.message` is only the next message.
        slug: the conversation; "" for a new one.
        trial_id: trial after which the conversation goes on; None if `draft` has all messages.

    Raises:
        DraftError: the draft is not valid, or the conversation has no such trial.
        CaseNotCreatedError: as in `load_transcript`.
    """
    transcript = load_transcript(slug, trial_id) if trial_id is not None else Transcript()
    if transcript.messages:
        next_message = {"role": "user", "content": draft.message}
        draft = replace(draft, message=render_json([*transcript.messages, next_message]))
    if not draft.expect.strip():
        has_tools = bool(draft.tools.strip())
        draft = replace(draft, expect=render_json(ANY_ANSWER if has_tools else NO_CALL), control=not has_tools)
    return parse_draft(draft)


def save_message(title: str, definition: UserCase, *, slug: str = "") -> Case:
    """Create a conversation, or add a version to the conversation `slug`.

    An equal conversation that was never sent is returned instead of a second one, because users who have to confirm
    paid requests submit the same message again.

    Raises:
        UnknownCaseError: the conversation was deleted.
        InvalidFieldsError: the name of the set of conversations is taken by a set of another kind.
    """
    if slug:
        return edit_case(slug, title, definition)
    if unsent_case := _find_unsent_conversation(title, definition):
        return unsent_case
    return add_case(title, definition, NewCaseOptions(set=DRAFT_SET_NAME, kind=CaseSet.Kind.DRAFT))


def _find_unsent_conversation(title: str, definition: UserCase) -> Case | None:
    """Return the newest conversation with this title and definition that has one version and is in no run."""
    stored_title = to_column_text(title, MAX_TITLE_CHARS)
    drafts = Case.objects.filter(set__name=DRAFT_SET_NAME, deleted_at=None, title=stored_title, current=1)
    equal_drafts = drafts.filter(versions__definition=render_case(definition))
    return equal_drafts.exclude(Exists(Cell.objects.filter(scenario=OuterRef("slug")))).last()


def build_message_request(case: Case, settings: MessageSettings, trial_id: int | None) -> RunRequest | None:
    """Return the request for the run of a message; None without a model.

    Args:
        case: the conversation.
        settings: how the message is sent.
        trial_id: trial whose run has the other settings, such as tool use mode and overrides. The defaults are used
            for None, for an imported run, and for a run whose stored request cannot be read.
    """
    if settings.model is None:
        return None
    run = Run.objects.filter(trials=trial_id, imported=False).first() if trial_id is not None else None
    return replace(
        _read_request(run),
        title=f"Playground: {case.title}"[:MAX_RUN_TITLE_CHARS],
        models=(settings.model,),
        profiles=(settings.profile,),
        strategies=(settings.strategy,),
        methods=(settings.method,),
        streams=(settings.stream,),
        scenarios=(case.slug,),
        trials=settings.trials,
        purpose=Run.PLAYGROUND,
        enforce_applicability=False,
    )


def _read_request(run: Run | None) -> RunRequest:
    """Return a request with those settings of a run that are not chosen for each message.

    Args:
        run: the run; None for the defaults, which also replace a stored request that is empty or cannot be read.
    """
    default = RunRequest(tool_use_mode="relaxed", tool_failure_policy="tolerated")
    if run is None or not run.request:
        return default
    try:
        source = RunRequest.from_json(run.request)
    except LaunchError:
        return default
    return replace(
        default,
        tool_use_mode=source.tool_use_mode,
        tool_failure_policy=source.tool_failure_policy,
        tool_allowlist=source.tool_allowlist,
        tool_denylist=source.tool_denylist,
        overrides=source.overrides,
        deadline_seconds=source.deadline_seconds,
        connect_seconds=source.connect_seconds,
        read_seconds=source.read_seconds,
    )


def build_case_request(case: Case, trial_id: int, trials: int) -> RunRequest | None:
    """Return the request for a run of a test case with the settings of the trial that it was made from.

    Args:
        case: the test case.
        trial_id: the trial, which must exist.
        trials: number of trials of the case.

    Returns:
        The request; None if the trial's model was deleted or, for an imported trial, is unknown.
    """
    config = RunConfig.objects.get(trials=trial_id)
    request = build_message_request(case, copy_settings(config, trials), trial_id)
    return replace(request, title="", purpose="") if request else None


def build_draft_to_send_again(trial_id: int, trials: int) -> tuple[CaseDraft, MessageSettings, str]:
    """Return the draft of a conversation that begins as a trial did, with its settings, and a note about its origin.

    Args:
        trial_id: the trial.
        trials: how many times the message is to be sent.

    Raises:
        CaseNotCreatedError: there is no such trial, its scenario has changed or no longer exists, or a case cannot send
            its messages.
    """
    trial = Trial.objects.select_related("config").filter(pk=trial_id, run__deleted_at=None).first()
    if trial is None:
        raise CaseNotCreatedError(f"There is no trial {trial_id}.")
    scenario, note = load_trial_scenario(trial), SEND_AGAIN_NOTE.format(id=trial_id)
    if isinstance(scenario, UserCaseScenario):
        draft = build_draft(scenario.title, scenario.case)
    elif is_copyable(scenario):
        instance = scenario.draw_instance(trial.instance_seed, kind=trial.instance_kind)
        # A test case has no example sets, so the examples become messages of its history.
        examples = load_sets(scenario.slug).get(trial.config.examples, ())
        try:
            case = copy_scenario(scenario, replace(instance, history=(*examples, *instance.history)))
            draft = build_draft(scenario.title, case)
        except ScenarioNotCopiedError as error:
            raise CaseNotCreatedError(str(error)) from None
    else:
        draft = replace(build_draft_from_trial(trial_id, needs_calls=False)[0], expect="")
    return draft, copy_settings(trial.config, trials), note


def save_as_case(trial_id: int) -> tuple[Case, bool]:
    """Return the test case that was made from a trial; create it from `build_draft_from_trial` if there is none.

    Returns:
        The case, and whether it is new.

    Raises:
        CaseNotCreatedError: as in `build_draft_from_trial`.
        DraftError: the trial's calls cannot be expected, for example because a called tool is not a tool of the case.
    """
    existing = Case.objects.filter(from_trial=trial_id, deleted_at=None, set__kind=CaseSet.Kind.OWN).first()
    if existing is not None:
        return existing, False
    title, definition = parse_draft(build_draft_from_trial(trial_id)[0])
    return add_case(title, definition, NewCaseOptions(from_trial=trial_id)), True
