"""Diff view: a trial beside another one, turn by turn, with its first difference marked.

For a trial that did not pass, the other trial is by default a passed one whose bodies are stored, of the same cell, or
else of the same run and scenario.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import F
from django.db.models.expressions import RawSQL

from toolbench.evals.bfcl.scenario import BFCL_GROUP
from toolbench.evals.user_cases.scenario import is_user_case_group
from toolbench.lab.models import Step, Trial
from toolbench.lab.query_params import parse_whole_number
from toolbench.lab.results.trial.bodies.partial_bodies import read_step_bodies, select_facts
from toolbench.lab.results.trial.line_diff import build_hunks
from toolbench.lab.results.trial.turn_text import TurnText, build_parsed_turns, build_raw_turns
from toolbench.lab.results.trial_list.index import choose_mark
from toolbench.lab.sql import load_statement
from toolbench.lab.traces.code_view import CodeLine

PARSED, RAW = "parsed", "raw"
MAX_TURNS = 24
_NEAREST_PASS_SQL = load_statement("results/trial/nearest_pass", columns="failed.id AS failed_id, near.id AS near_id")
_NEAREST_PASS_ID_SQL = load_statement("results/trial/nearest_pass", columns="near.id")


@dataclass(frozen=True, slots=True)
class DiffTurn:
    """Turn of both trials.

    Attributes:
        turn: number of the turn, from 0.
        kind: "same", "alike" (equal except for values of another instance), "differs", or "unread" (not enough was read
            to find a difference).
        is_first_difference: whether it is the first turn that differs.
        left: turn of the page's trial; None if that trial has no such turn.
        right: turn of the other trial; None if that trial has no such turn.
        left_lines: lines to show of the left turn, a hunk for each difference; () if the turn is the same or unread.
        right_lines: lines to show of the right turn, in the same form.
    """

    turn: int
    kind: str
    is_first_difference: bool
    left: TurnText | None
    right: TurnText | None
    left_lines: tuple[CodeLine, ...] = ()
    right_lines: tuple[CodeLine, ...] = ()

    @property
    def is_later_difference(self) -> bool:
        """Return whether the turn differs and an earlier turn differs too."""
        return self.kind == "differs" and not self.is_first_difference

    @property
    def summary(self) -> str:
        """Return the summary of the left turn, or of the right one without a left one."""
        return next((turn.summary for turn in (self.left, self.right) if turn), "")


@dataclass(frozen=True, slots=True)
class DiffPage:
    """Content of the diff view.

    Attributes:
        level: PARSED or RAW.
        notice: why nothing is compared, or why the other trial is not the one in the URL; otherwise empty.
        other: the other trial; None without one.
        mark: outcome of the other trial.
        is_chosen: whether the URL names the other trial.
        same_cell: whether both trials belong to one cell.
        same_instance: whether both trials have the same task.
        turns: at most MAX_TURNS turns.
        is_truncated: whether one of the trials has more than MAX_TURNS turns.
    """

    level: str
    notice: str
    other: Trial | None = None
    mark: str = ""
    is_chosen: bool = False
    same_cell: bool = False
    same_instance: bool = False
    turns: tuple[DiffTurn, ...] = ()
    is_truncated: bool = False

    @property
    def has_difference(self) -> bool:
        """Return whether a shown turn differs."""
        return any(turn.is_first_difference for turn in self.turns)

    @property
    def has_unread_turn(self) -> bool:
        """Return whether too little of a shown turn was read to find a difference."""
        return any(turn.kind == "unread" for turn in self.turns)


def get_diff_page(trial: Trial, *, beside: str = "", level: str = "") -> DiffPage:
    """Return the diff view of a trial.

    Args:
        trial: the trial of the page.
        beside: primary key of the other trial. Any other text stands for the nearest passed trial, or for none if the
            page's trial passed.
        level: RAW; any other text stands for PARSED.
    """
    level, beside = RAW if level == RAW else PARSED, beside.strip()
    if trial.state != Trial.State.DONE:
        return DiffPage(level, "You can compare this trial once it has finished.")
    other_trial, notice = _find_other(trial, beside)
    if other_trial is None:
        return DiffPage(level, notice)
    for compared in (trial, other_trial):
        if compared.bodies_removed_at is not None:
            return DiffPage(level, f"The bodies of trial {compared.pk} were removed, so it cannot be compared.")
    is_same_instance = _is_same_instance(trial, other_trial)
    left, right = _read_turns((trial, other_trial), level)
    if not left or not right:
        empty_trial = other_trial if left else trial
        return DiffPage(level, f"Trial {empty_trial.pk} sent no request, so there is nothing to compare.")
    turns = tuple(_compare_turns(left, right, exact=is_same_instance or level == RAW))
    return DiffPage(
        level=level,
        notice=notice,
        other=other_trial,
        mark=choose_mark(other_trial),
        is_chosen=bool(beside) and not notice,
        same_cell=trial.cell_id == other_trial.cell_id,
        same_instance=is_same_instance,
        turns=turns[:MAX_TURNS],
        is_truncated=len(turns) > MAX_TURNS,
    )


def _find_other(trial: Trial, beside: str) -> tuple[Trial | None, str]:
    """Return the trial to compare with or None, and a notice about the choice, which may be empty."""
    other_trials = Trial.objects.select_related("config").filter(run__deleted_at=None).exclude(pk=trial.pk)
    if beside and (other := other_trials.filter(pk=parse_whole_number(beside) or 0).first()):
        return other, ""
    notice = f"There is no other trial “{beside[:40]}”." if beside else ""
    if trial.outcome == Trial.Outcome.PASS:
        return None, notice or "This trial passed. Enter another trial to compare it with."
    nearest = other_trials.filter(pk=RawSQL(_NEAREST_PASS_ID_SQL, [[trial.pk]])).first()
    if nearest is None:
        notice = f"{notice} No passed trial of this scenario in this run can be compared. Enter another trial.".strip()
    return nearest, notice


def _is_same_instance(trial: Trial, other: Trial) -> bool:
    if (trial.scenario, trial.scenario_version) != (other.scenario, other.scenario_version):
        return False
    if (trial.instance_kind, trial.instance_seed) == (other.instance_kind, other.instance_seed):
        return True
    group = trial.cell.scenario_group
    return group == BFCL_GROUP or is_user_case_group(group)  # these cases have one instance for all seeds


def _read_turns(pair: Sequence[Trial], level: str) -> list[dict[int, TurnText]]:
    """Return the turns of both trials by number, with one turn more than the page shows."""
    steps = Step.objects.filter(trial__in=pair, execution=F("trial__execution"), turn__lte=MAX_TURNS)
    all_steps = list(steps.order_by("ordinal"))
    steps_by_trial = [[step for step in all_steps if step.trial_id == trial.pk] for trial in pair]
    step_ids = [step.pk for step in all_steps]
    if level == RAW:
        stored = read_step_bodies(all_steps, responses=step_ids)
        responses = {pk: bodies.response for pk, bodies in stored.items()}
        return [build_raw_turns(steps, responses) for steps in steps_by_trial]
    stored = read_step_bodies(all_steps, requests=step_ids)
    requests = {pk: bodies.request for pk, bodies in stored.items()}
    return [build_parsed_turns(steps, select_facts(stored), requests) for steps in steps_by_trial]


def _compare_turns(left: Mapping[int, TurnText], right: Mapping[int, TurnText], *, exact: bool) -> list[DiffTurn]:
    """Return the turns of both trials, compared.

    Args:
        left: turns of the page's trial by number.
        right: turns of the other trial by number.
        exact: whether values of the instances are compared too.
    """
    turns: list[DiffTurn] = []
    has_difference = False
    for number in sorted({*left, *right}):
        turn = _compare_turn(number, left.get(number), right.get(number), exact=exact)
        turns.append(replace(turn, is_first_difference=turn.kind == "differs" and not has_difference))
        has_difference = has_difference or turn.kind == "differs"
    return turns


def _compare_turn(turn: int, left: TurnText | None, right: TurnText | None, *, exact: bool) -> DiffTurn:
    """Return the compared turn. Lines are rendered only if the contents are not equal."""
    if left and right and left.content_key == right.content_key:
        return DiffTurn(turn, "same" if left.is_complete and right.is_complete else "unread", False, left, right)
    left_lines, is_left_complete = left.list_lines() if left else ((), True)
    right_lines, is_right_complete = right.list_lines() if right else ((), True)
    kind = "differs"
    if left and right:
        line_kind = _compare_lines(left_lines, right_lines, are_complete=(is_left_complete, is_right_complete))
        kind = line_kind if exact or line_kind == "same" else _compare_shapes(left, right)
        left, right = replace(left, is_complete=is_left_complete), replace(right, is_complete=is_right_complete)
    hunks = build_hunks(left_lines, right_lines) if kind not in ("same", "unread") else ((), ())
    return DiffTurn(turn, kind, False, left, right, *hunks)


def _compare_lines(left: Sequence[str], right: Sequence[str], *, are_complete: tuple[bool, bool]) -> str:
    """Return "same", "differs" or "unread".

    Args:
        left: lines of the first side.
        right: lines of the second side.
        are_complete: for each side, whether no line is missing at its end.
    """
    shared = min(len(left), len(right))
    if left[:shared] != right[:shared]:
        return "differs"
    if len(left) == len(right):
        return "same" if all(are_complete) else "unread"
    is_shorter_complete = are_complete[0] if len(left) == shared else are_complete[1]
    return "differs" if is_shorter_complete else "unread"


def _compare_shapes(left: TurnText, right: TurnText) -> str:
    """Return "alike", "differs", or "unread" if the shape of a turn is unknown.

    The shape of a turn is the turn without the values of its instance.
    """
    shapes = left.build_shape(), right.build_shape()
    if None in shapes:
        return "unread"
    return "alike" if shapes[0] == shapes[1] else "differs"


def find_nearest_passes(trial_ids: Sequence[int]) -> Mapping[int, int]:
    """Return the id of the nearest passed trial by the id of the failed trial, with one query.

    A failed trial is left out if its run has no passed trial of its scenario with stored bodies.
    """
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_PASS_SQL, [list(trial_ids)])
        return dict(cursor.fetchall())
