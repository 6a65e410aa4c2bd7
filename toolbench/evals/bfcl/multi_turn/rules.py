"""BFCL's rules for conversations of several turns, implemented independently of its checker.

A turn for which BFCL has calls needs a call. After the turn, the public state of every class must be the one after
BFCL's calls, and each result of BFCL's calls in the turn must have occurred so far; results of other calls are ignored.
Turns for which BFCL has no calls are not judged. `multi_turn/agreement.py` compares the rules with the checker.
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
    """A mistake in the calls after one message of the user.

    Attributes:
        turn: The index of the message.
        kind: NO_CALL_MISTAKE, STATE_MISTAKE, RESULT_MISTAKE or UNFINISHED_MISTAKE.
        message: The mistake as a phrase.
    """

    turn: int
    kind: str
    message: str


def find_mistake(case: MultiTurnCase, turns: Sequence[Sequence[BfclCall]]) -> TurnMistake | None:
    """Return the first mistake for which BFCL rejects a conversation; None if BFCL accepts it.

    Args:
        case: The case.
        turns: The calls after each message of the user.

    Raises:
        NotInstalledError: BFCL is not installed.
        CallRunnerError: BFCL's classes did not answer or failed.
    """
    if len(turns) < len(case.messages):
        return TurnMistake(len(turns), UNFINISHED_MISTAKE, "the conversation ended before this message")
    expected, made = run_calls(case, parse_golden_turns(case)), run_calls(case, turns)
    results_so_far: Counter[str] = Counter()
    for number, (expected_turn, made_turn) in enumerate(zip(expected, made, strict=True)):
        results_so_far.update(made_turn.results)
        if not expected_turn.results:
            continue
        if mistake := _find_turn_mistake(case.answers[number], expected_turn, made_turn, results_so_far):
            return TurnMistake(number, *mistake)
    return None


def _find_turn_mistake(
    answers: Sequence[str], expected: TurnResults, made: TurnResults, results_so_far: Counter[str]
) -> tuple[str, str] | None:
    """Return the kind and the message of a turn's mistake; None if there is none."""
    if not made.results:
        return NO_CALL_MISTAKE, f"no call was made; BFCL calls {', '.join(answers)}"
    if difference := find_state_difference(expected.state, made.state):
        return STATE_MISTAKE, difference
    if missing := Counter(expected.results) - results_so_far:
        result = next(iter(missing))
        call = answers[expected.results.index(result)]
        return RESULT_MISTAKE, f"no result so far equals that of {call}: {render_short(result)}"
    return None
