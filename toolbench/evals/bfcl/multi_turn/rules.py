"""BFCL's rules for several turns, written anew: after each turn the public state of every class is the one that BFCL's
own calls lead to, and each result of theirs in that turn was given at some time so far; calls beside them do not
matter. A turn in which BFCL calls needs a call; one in which it does not is not looked at.
`multi_turn/agreement.py` holds them to the checker."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.evals.bfcl.golden_answers import Call
from toolbench.evals.bfcl.multi_turn.call_runner import Played, play
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, golden_turns
from toolbench.evals.bfcl.multi_turn.states import first_difference
from toolbench.evals.judging.messages import shown

NO_CALL, STATE, RESULT, UNFINISHED = "no call", "state", "result", "unfinished"


@dataclass(frozen=True, slots=True)
class Mistake:
    """`turn` is the user's message, from 0. `kind` is one of those above."""

    turn: int
    kind: str
    says: str


def mistake(case: MultiTurnCase, turns: Sequence[Sequence[Call]]) -> Mistake | None:
    """The first thing that BFCL would refuse of the calls made for each message, None for what it accepts. Raises
    NotInstalled and NoAnswer."""
    if len(turns) < len(case.messages):
        return Mistake(len(turns), UNFINISHED, "the conversation did not come this far")
    expected, made = play(case, golden_turns(case)), play(case, turns)
    so_far: Counter[str] = Counter()
    for number, (wanted, had) in enumerate(zip(expected, made, strict=True)):
        so_far.update(had.results)
        if wanted.results and (wrong := _wrong(case.answers[number], wanted, had, so_far)):
            return Mistake(number, *wrong)
    return None


def _wrong(answers: Sequence[str], wanted: Played, had: Played, so_far: Counter[str]) -> tuple[str, str] | None:
    if not had.results:
        return NO_CALL, f"no call was made; BFCL calls {', '.join(answers)}"
    if differs := first_difference(wanted.state, had.state):
        return STATE, differs
    if missing := Counter(wanted.results) - so_far:
        result = next(iter(missing))
        call = answers[wanted.results.index(result)]
        return RESULT, f"no result so far is the one of {call}: {shown(result)}"
    return None
