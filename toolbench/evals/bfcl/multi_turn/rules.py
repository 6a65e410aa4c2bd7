"""BFCL's rules for several turns, written anew: after each turn the public state of every class is the one that BFCL's
own calls lead to, and each result of theirs in that turn was given at some time so far; calls beside them do not
matter. A turn in which BFCL calls needs a call; one in which it does not is not looked at.
`multi_turn/agreement.py` holds them to the checker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.bfcl.golden_answers import BfclCall
from toolbench.evals.bfcl.multi_turn.call_runner import TurnResults, run_calls
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, parse_golden_turns
from toolbench.evals.bfcl.multi_turn.states import find_state_difference
from toolbench.evals.judging.messages import render_short

NO_CALL_MISTAKE, STATE_MISTAKE, RESULT_MISTAKE, UNFINISHED_MISTAKE = "no call", "state", "result", "unfinished"


@dataclass(frozen=True, slots=True)
class TurnMistake:
    """`turn` is the user's message, from 0. `kind` is one of those above."""

    turn: int
    kind: str
    says: str


def find_mistake(case: MultiTurnCase, turns: Sequence[Sequence[BfclCall]]) -> TurnMistake | None:
    """The first thing that BFCL would refuse of the calls made for each message, None for what it accepts. Raises
    NotInstalledError and NoAnswer."""
    if len(turns) < len(case.messages):
        return TurnMistake(len(turns), UNFINISHED_MISTAKE, "the conversation did not come this far")
    expected, made = run_calls(case, parse_golden_turns(case)), run_calls(case, turns)
    so_far: Counter[str] = Counter()
    for number, (wanted, had) in enumerate(zip(expected, made, strict=True)):
        so_far.update(had.results)
        if wanted.results and (wrong := _find_turn_mistake(case.answers[number], wanted, had, so_far)):
            return TurnMistake(number, *wrong)
    return None


def _find_turn_mistake(
    answers: Sequence[str], wanted: TurnResults, had: TurnResults, so_far: Counter[str]
) -> tuple[str, str] | None:
    if not had.results:
        return NO_CALL_MISTAKE, f"no call was made; BFCL calls {', '.join(answers)}"
    if differs := find_state_difference(wanted.state, had.state):
        return STATE_MISTAKE, differs
    if missing := Counter(wanted.results) - so_far:
        result = next(iter(missing))
        call = answers[wanted.results.index(result)]
        return RESULT_MISTAKE, f"no result so far is the one of {call}: {render_short(result)}"
    return None
