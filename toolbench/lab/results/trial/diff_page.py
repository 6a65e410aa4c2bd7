"""The diff view: a trial beside another one, by default the nearest passed one, turn by turn.

It reads stored steps with a fixed number of queries and marks the first divergence.
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
    """A turn of both trials.

    Attributes:
        kind: "same", "alike" (equal except for values of another instance), "differs", or "unread" (equal as far as
            read).
        first: True for the first divergence.
        left: None if that trial had ended.
        right: None if that trial had ended.
    """

    turn: int
    kind: str
    first: bool
    left: TurnText | None
    right: TurnText | None
    left_lines: tuple[CodeLine, ...] = ()
    right_lines: tuple[CodeLine, ...] = ()

    @property
    def later(self) -> bool:
        """Return whether the turn differs after the first divergence."""
        return self.kind == "differs" and not self.first

    @property
    def summary(self) -> str:
        """Return the turn in a few words."""
        return next((turn.summary for turn in (self.left, self.right) if turn), "")


@dataclass(frozen=True, slots=True)
class DiffPage:
    """Everything that the diff view shows.

    Attributes:
        notice: the reason why there is no other trial or why another was taken; else empty.
        other: None if there is no trial to compare with.
        chosen: True if the URL names the other trial.
        cut: True if there are more than MAX_TURNS turns.
    """

    level: str
    notice: str
    other: Trial | None = None
    mark: str = ""
    chosen: bool = False
    same_cell: bool = False
    same_instance: bool = False
    turns: tuple[DiffTurn, ...] = ()
    cut: bool = False

    @property
    def diverges(self) -> bool:
        """Return whether any turn differs."""
        return any(turn.first for turn in self.turns)

    @property
    def unread(self) -> bool:
        """Return whether any turn was not read completely."""
        return any(turn.kind == "unread" for turn in self.turns)


def get_diff_page(trial: Trial, *, beside: str = "", level: str = "") -> DiffPage:
    """Return the diff view of a trial.

    Args:
        trial: the trial of the page.
        beside: primary key of the other trial; empty or unreadable means the nearest passed one of a failed trial.
        level: "raw"; any other value means "parsed".
    """
    level = RAW if level == RAW else PARSED
    if trial.state != Trial.State.DONE:
        return DiffPage(level, "You can compare this trial once it has finished.")
    other_trial, notice = _find_other(trial, beside.strip())
    if other_trial is None:
        return DiffPage(level, notice)
    instance = _is_same_instance(trial, other_trial)
    left, right = _read_turns((trial, other_trial), level)
    if missing := next(
        (trial for trial, notice_text in ((trial, left), (other_trial, right)) if not notice_text), None
    ):
        return DiffPage(level, f"Nothing was sent of trial {missing.pk}: there is nothing to lay side by side.")
    turns = tuple(_compare_turns(left, right, exact=instance or level == RAW))
    return DiffPage(
        level=level,
        notice=notice,
        other=other_trial,
        mark=choose_mark(other_trial),
        chosen=bool(beside) and not notice,
        same_cell=trial.cell_id == other_trial.cell_id,
        same_instance=instance,
        turns=turns[:MAX_TURNS],
        cut=len(turns) > MAX_TURNS,
    )


def _find_other(trial: Trial, beside: str) -> tuple[Trial | None, str]:
    """Return the trial to compare with, and a notice about the choice."""
    found = Trial.objects.select_related("config").filter(run__deleted_at=None).exclude(pk=trial.pk)
    if beside and (other := found.filter(pk=parse_whole_number(beside) or 0).first()):
        return other, ""
    notice = f"There is no other trial “{beside[:40]}”." if beside else ""
    if trial.outcome == Trial.Outcome.PASS:
        return None, notice or "It passed: name a trial to see where the two part."
    nearest = found.filter(pk=RawSQL(_NEAREST_PASS_ID_SQL, [[trial.pk]])).first()
    return (
        nearest,
        notice if nearest else f"{notice} No trial of this scenario passed in its run: name another.".strip(),
    )


def _is_same_instance(trial: Trial, other: Trial) -> bool:
    if (trial.scenario, trial.scenario_version) != (other.scenario, other.scenario_version):
        return False
    drawn = [(trial.instance_kind, trial.instance_seed) for trial in (trial, other)]
    group = trial.cell.scenario_group
    # Every seed asks a case of these groups in the same words.
    return drawn[0] == drawn[1] or group == BFCL_GROUP or is_user_case_group(group)


def _read_turns(pair: Sequence[Trial], level: str) -> list[dict[int, TurnText]]:
    """Return both trials by turn, with one turn more than is shown to tell whether there are more."""
    steps = Step.objects.filter(trial__in=pair, execution=F("trial__execution"), turn__lte=MAX_TURNS)
    all_steps = list(steps.order_by("ordinal"))
    steps_by_trial = [[step for step in all_steps if step.trial_id == trial.pk] for trial in pair]
    pks = [step.pk for step in all_steps]
    if level == RAW:
        stored = read_step_bodies(all_steps, responses=pks)
        responses = {pk: bodies.response for pk, bodies in stored.items()}
        return [build_raw_turns(steps, responses) for steps in steps_by_trial]
    stored = read_step_bodies(all_steps, requests=pks)
    requests = {pk: bodies.request for pk, bodies in stored.items()}
    return [build_parsed_turns(steps, select_facts(stored), requests) for steps in steps_by_trial]


def _compare_turns(left: Mapping[int, TurnText], right: Mapping[int, TurnText], *, exact: bool) -> list[DiffTurn]:
    found: list[DiffTurn] = []
    for turn in sorted({*left, *right}):
        parted = any(turn.kind == "differs" for turn in found)
        found.append(_compare_turn(turn, left.get(turn), right.get(turn), exact=exact, parted=parted))
    return found


def _compare_turn(turn: int, left: TurnText | None, right: TurnText | None, *, exact: bool, parted: bool) -> DiffTurn:
    """Return the compared turn. Lines are rendered only where the contents are not equal."""
    if left and right and left.content_key == right.content_key:
        return DiffTurn(turn, "same" if left.is_complete and right.is_complete else "unread", False, left, right)
    lines, whole = left.lines() if left else ((), True)
    other_lines, other_whole = right.lines() if right else ((), True)
    kind = "differs"
    if left and right:
        alike = _compare_lines(lines, other_lines, ended=(whole, other_whole))
        kind = alike if exact or alike == "same" else _compare_shapes(left, right)
        left, right = replace(left, is_complete=whole), replace(right, is_complete=other_whole)
    shown = build_hunks(lines, other_lines) if kind not in ("same", "unread") else ((), ())
    return DiffTurn(turn, kind, kind == "differs" and not parted, left, right, *shown)


def _compare_lines(left: Sequence[str], right: Sequence[str], *, ended: tuple[bool, bool]) -> str:
    """Return how the lines compare.

    Args:
        left: lines of the first side.
        right: lines of the second side.
        ended: for each side, False if its lines are only the beginning.
    """
    shared = min(len(left), len(right))
    if left[:shared] != right[:shared]:
        return "differs"
    if len(left) == len(right):
        return "same" if all(ended) else "unread"
    shorter_ended = ended[0] if len(left) == shared else ended[1]
    return "differs" if shorter_ended else "unread"


def _compare_shapes(left: TurnText, right: TurnText) -> str:
    shapes = left.shape(), right.shape()
    if None in shapes:
        return "unread"
    return "alike" if shapes[0] == shapes[1] else "differs"


def find_nearest_passes(trial_ids: Sequence[int]) -> Mapping[int, int]:
    """Return the nearest passed trial by failed trial, with one query. Trials without one in their run are absent."""
    with connection.cursor() as cursor:
        cursor.execute(_NEAREST_PASS_SQL, [list(trial_ids)])
        return dict(cursor.fetchall())
