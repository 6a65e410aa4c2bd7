"""Actions of the run page, one for each button, and the form that adds missing trials."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.http import QueryDict

from toolbench.lab.errors import UNKNOWN_BUTTON
from toolbench.lab.planning.run_request import MAX_CELL_TRIALS
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.runs import control, limits
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.runs.sentences import describe_added, describe_resumed, describe_retried


@dataclass(frozen=True, slots=True)
class ActionResult:
    """Result of an action.

    Attributes:
        sentence: message for the user.
        run_id: primary key of the run to show next; None after a deletion.
    """

    sentence: str
    run_id: int | None


@dataclass(frozen=True, slots=True)
class RunAction:
    """Action on a run, with the values of the sent form."""

    name: str
    values: Mapping[str, str]

    @property
    def repeated_fields(self) -> dict[str, str]:
        """Return the fields that the page on which the user confirms paid requests must send again."""
        names = ("action", "cell", "count", "request_cap", "token_cap")
        return {name: self.values[name] for name in names if name in self.values}

    def execute(self, run_id: int, owner: User | None) -> ActionResult:
        """Execute the action and return its result.

        Raises:
            RunActionError: the action is not known or not possible, or a value is not a number.
            PaidRequestsUnconfirmedError: paid requests must be confirmed first.
        """
        if self.name in REPEAT_ACTIONS:
            start_repeat, sentence = REPEAT_ACTIONS[self.name]
            run = start_repeat(run_id, owner=owner, confirmed_requests=_parse_confirmed_requests(self.values))
            return ActionResult(sentence.format(run.repeat_of_id), run.pk)
        if self.name == "pause":
            control.pause_run(run_id, f"The user {owner.username} paused the run." if owner else "")
            return ActionResult("Paused: running trials finish, and no new one starts.", run_id)
        if self.name == "delete":
            control.delete_run(run_id)
            return ActionResult(f"Run {run_id} is deleted.", None)
        if self.name not in PLAIN_ACTIONS:
            raise RunActionError(UNKNOWN_BUTTON)
        return ActionResult(PLAIN_ACTIONS[self.name](run_id, self.values), run_id)


def parse_action(values: Mapping[str, str]) -> RunAction:
    """Return the action of the sent form; `execute` refuses an unknown one."""
    return RunAction(values.get("action", ""), values)


def _cancel(run_id: int, values: Mapping[str, str]) -> str:
    control.cancel_run(run_id)
    return "Cancelling: requests in flight are dropped; finished trials are kept."


def _resume(run_id: int, values: Mapping[str, str]) -> str:
    control.resume_run(run_id)
    return "Resumed."


def _retry_errored(run_id: int, values: Mapping[str, str]) -> str:
    count = control.retry_errored_trials(run_id, confirmed_requests=_parse_confirmed_requests(values))
    return describe_retried(count)


def _resume_cancelled(run_id: int, values: Mapping[str, str]) -> str:
    count = control.resume_cancelled_run(run_id, confirmed_requests=_parse_confirmed_requests(values))
    return describe_resumed(count)


def _set_limits(run_id: int, values: Mapping[str, str]) -> str:
    limits.set_limits_and_resume(
        run_id,
        request_cap=_parse_count(values, "request_cap"),
        token_cap=_parse_count(values, "token_cap"),
        confirmed_requests=_parse_confirmed_requests(values),
    )
    return "The limits are changed and the run continues."


def _add_trials(run_id: int, values: Mapping[str, str]) -> str:
    cell_id, count = _parse_count(values, "cell"), _parse_count(values, "count")
    if cell_id is None or count is None:
        raise RunActionError("Enter how many trials to add; nothing was added.")
    confirmed_requests = _parse_confirmed_requests(values)
    return describe_added(control.add_trials(run_id, cell_id, count, confirmed_requests=confirmed_requests))


def _save_label(run_id: int, values: Mapping[str, str]) -> str:
    control.set_label(run_id, values.get("label", ""))
    return "Label saved."


def _keep_bodies(run_id: int, values: Mapping[str, str]) -> str:
    control.set_body_retention(run_id, keeps_bodies=True)
    return "Retention will not remove the bodies of this run."


def _release_bodies(run_id: int, values: Mapping[str, str]) -> str:
    control.set_body_retention(run_id, keeps_bodies=False)
    return "The rules of retention apply to this run again."


def _parse_confirmed_requests(values: Mapping[str, str]) -> int:
    """Return the number of paid requests that the user has confirmed; 0 for an empty field.

    Raises:
        RunActionError: as in `_parse_count`.
    """
    return _parse_count(values, "agreed") or 0


def _parse_count(values: Mapping[str, str], name: str) -> int | None:
    """Return the whole number of a field; None if the field is empty.

    Raises:
        RunActionError: the text is not a whole number above 0.
    """
    text = values.get(name, "").strip()
    if not text:
        return None
    number = parse_whole_number(text, minimum=1)
    if number is None:
        raise RunActionError(f"“{text[:40]}” is not a whole number above 0; nothing was changed.")
    return number


# Actions that start a new run: the function, and the message, which names the repeated run.
REPEAT_ACTIONS = {
    "repeat": (control.start_repeat, "This run repeats run {} with the same seeds."),
    "aa": (
        control.start_noise_repeat,
        "This run repeats run {} with new sampling seeds, to measure the A/A noise.",
    ),
}
# Actions that need no user, after which the same run is shown. They take the run's id and the sent values, and return
# a message.
PLAIN_ACTIONS: dict[str, Callable[[int, Mapping[str, str]], str]] = {
    "cancel": _cancel,
    "resume": _resume,
    "retry": _retry_errored,
    "resume-cancelled": _resume_cancelled,
    "raise": _set_limits,
    "add": _add_trials,
    "label": _save_label,
    "keep-bodies": _keep_bodies,
    "release-bodies": _release_bodies,
}


@dataclass(frozen=True, slots=True)
class MissingTrialsForm:
    """Values of the form that adds missing trials.

    Attributes:
        target: number of trials that each cell should have; None if it is missing or not between 1 and MAX_CELL_TRIALS.
        target_text: the target as it was entered; may be empty.
        error: message about an invalid target; empty for a valid or missing target.
        cells: ids of the chosen cells; None if no choice of cells was sent.
        shown: number of trials to add that the page showed; 0 if the form did not send it.
        agreed: number of paid requests that the user has confirmed.
    """

    target: int | None
    target_text: str
    error: str
    cells: frozenset[int] | None
    shown: int
    agreed: int

    @classmethod
    def parse(cls, values: QueryDict) -> "MissingTrialsForm":
        """Parse the sent form.

        Values of `cell` that are not ids are ignored, and a missing or unreadable `shown` or `agreed` is 0.
        """
        text = values.get("target", "").strip()
        target = parse_whole_number(text, minimum=1, maximum=MAX_CELL_TRIALS)
        error = f"Enter 1 to {MAX_CELL_TRIALS:,} trials. The table uses the number that the run has now."
        cell_ids = (parse_whole_number(value, minimum=1) for value in values.getlist("cell"))
        cells = frozenset(cell_id for cell_id in cell_ids if cell_id is not None)
        return cls(
            target=target,
            target_text=text,
            error=error if text and target is None else "",
            cells=cells if cells or "chosen" in values else None,
            shown=parse_whole_number(values.get("shown", "")) or 0,
            agreed=parse_whole_number(values.get("agreed", "")) or 0,
        )
