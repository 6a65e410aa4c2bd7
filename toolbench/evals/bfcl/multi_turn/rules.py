"""BFCL's rules for several turns, implemented independently.

After each turn the public state of every class is the one to which BFCL's own calls lead, and each result of those
calls in that turn has occurred by then; other calls are ignored. A turn in which BFCL calls needs a call; any other
turn is not judged. `multi_turn/agreement.py` compares the rules with the checker.
"""

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
    """A mistake after a message of the user.

    Attributes:
        turn: The index of the message.
        kind: One of the constants above.
    """

    turn: int
    kind: str
    message: str


def find_mistake(case: MultiTurnCase, turns: Sequence[Sequence[BfclCall]]) -> TurnMistake | None:
    """Return the first mistake for which BFCL would reject the calls of each message; None if it accepts them.

    Raises:
        NotInstalledError: BFCL is not installed.
        CallRunnerError: BFCL's classes did not answer or failed.
    """
    if len(turns) < len(case.messages):
        return TurnMistake(len(turns), UNFINISHED_MISTAKE, "the conversation did not come this far")
    expected, made = run_calls(case, parse_golden_turns(case)), run_calls(case, turns)
    so_far: Counter[str] = Counter()
    for number, (expected_turn, had) in enumerate(zip(expected, made, strict=True)):
        so_far.update(had.results)
        if expected_turn.results and (wrong := _find_turn_mistake(case.answers[number], expected_turn, had, so_far)):
            return TurnMistake(number, *wrong)
    return None


def _find_turn_mistake(
    answers: Sequence[str], expected: TurnResults, had: TurnResults, so_far: Counter[str]
) -> tuple[str, str] | None:
    if not had.results:
        return NO_CALL_MISTAKE, f"no call was made; BFCL calls {', '.join(answers)}"
    if differs := find_state_difference(expected.state, had.state):
        return STATE_MISTAKE, differs
    if missing := Counter(expected.results) - so_far:
        result = next(iter(missing))
        call = answers[expected.results.index(result)]
        return RESULT_MISTAKE, f"no result so far is the one of {call}: {render_short(result)}"
    return None
