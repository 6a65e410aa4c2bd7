"""Comparison of the multi-turn rules with BFCL's checker, on golden answers and on changed ones."""

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from toolbench.evals.bfcl.agreement import CheckerComparison
from toolbench.evals.bfcl.ask_checker import CheckerVerdict, check_lines
from toolbench.evals.bfcl.golden_answers import BfclCall
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase, parse_golden_turns
from toolbench.evals.bfcl.multi_turn.rules import find_mistake

HARMLESS_FUNCTIONS = (  # functions that change no state; without arguments some of them fail
    "pwd",
    "get_zipcode_based_on_city",
    "list_all_airports",
    "get_current_time",
    "posting_get_login_status",
)
TurnCalls = tuple[tuple[BfclCall, ...], ...]  # the calls after each message of the user


def compare_with_checker(cases: Iterable[MultiTurnCase], *, stride: int = 1) -> tuple[CheckerComparison, ...]:
    """Return the comparisons of answers to every case, in order.

    Args:
        cases: The cases.
        stride: The step through the answers of each case: with n, the golden answer and every n-th answer after it.

    Raises:
        NotInstalledError: BFCL is not installed.
        RuntimeError: The process of BFCL's checker failed.
        CallRunnerError: BFCL's classes did not answer or failed.
    """
    requests = [(case, kind, turns) for case in cases for kind, turns in islice(iter_answers(case), 0, None, stride)]
    verdicts = check_answers([(case, turns) for case, _, turns in requests])
    return tuple(
        _build_comparison(case, kind, turns, verdict.valid)
        for (case, kind, turns), verdict in zip(requests, verdicts, strict=True)
    )


def check_answers(answers: Sequence[tuple[MultiTurnCase, TurnCalls]]) -> tuple[CheckerVerdict, ...]:
    """Return BFCL's verdict on each conversation, in order.

    All calls after one message are passed to the checker as one answer.

    Raises:
        NotInstalledError: BFCL is not installed.
        RuntimeError: The process of BFCL's checker failed.
    """
    return check_lines([_render_line(case, turns) for case, turns in answers])


def iter_answers(case: MultiTurnCase) -> Iterator[tuple[str, TurnCalls]]:
    """Yield the kind and the calls of the golden answer, then of answers with one change each.

    The changes are drawn with the case's id as the seed. A change may leave the answer as it is.
    """
    golden, generator = parse_golden_turns(case), random.Random(case.id)
    yield "golden", golden
    yield "no call at all", tuple(() for _ in golden)
    yield "turns reversed", golden[::-1]
    yield "all in the first turn", (tuple(call for turn in golden for call in turn), *(() for _ in golden[1:]))
    for number, turn in enumerate(golden):
        for kind, changed in _iter_changes(case, turn, generator):
            yield f"turn {number + 1}: {kind}", (*golden[:number], changed, *golden[number + 1 :])
        if number and golden[number - 1]:
            # The turn's own calls are replaced by a repeated call, because a turn without a call is rejected anyway.
            too_early = (
                *golden[: number - 1],
                (*golden[number - 1], *turn),
                golden[number - 1][-1:],
                *golden[number + 1 :],
            )
            yield f"turn {number + 1}: one turn too early", too_early


def _iter_changes(
    case: MultiTurnCase, turn: tuple[BfclCall, ...], generator: random.Random
) -> Iterator[tuple[str, Any]]:
    """Yield the kind of each change and the changed calls of the turn."""
    function_name = generator.choice(case.functions)["name"]
    yield "a call more", (*turn, (function_name, {}))
    harmless_names = [function["name"] for function in case.functions if function["name"] in HARMLESS_FUNCTIONS]
    if harmless_names:
        yield "a harmless call more", ((generator.choice(harmless_names), {}), *turn)
    if not turn:
        return
    index = generator.randrange(len(turn))
    name, arguments = turn[index]
    before, after = turn[:index], turn[index + 1 :]
    yield "no call", ()
    yield "a call dropped", (*before, *after)
    yield "a call twice", (*before, turn[index], turn[index], *after)
    yield "order reversed", turn[::-1]
    yield "another function", (*before, (function_name, arguments), *after)
    yield "a function that is not there", (*before, ("no_such_function", arguments), *after)
    for key, value in arguments.items():
        other_arguments = {other_key: other for other_key, other in arguments.items() if other_key != key}
        yield f"{key} dropped", (*before, (name, other_arguments), *after)
        for changed in (_change_slightly(value), _rewrite_equivalent(value)):
            yield f"{key} is {changed!r}"[:80], (*before, (name, {**arguments, key: changed}), *after)


def _change_slightly(value: Any) -> Any:
    """Return a value that differs a little; None for an object or null, and an empty text or list unchanged."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    return value[:-1] if isinstance(value, str | list) else None


def _rewrite_equivalent(value: Any) -> Any:
    """Return a value that a tolerant comparison would accept as the same."""
    if isinstance(value, str | list):
        return value.upper() if isinstance(value, str) else value[::-1]
    return float(value) if type(value) is int else str(value)


def _render_line(case: MultiTurnCase, turns: TurnCalls) -> str:
    entry = {"id": case.id, "initial_config": case.config, "involved_classes": case.classes}
    python_turns = [[[_render_python(call) for call in turn]] if turn else [] for turn in turns]
    return json.dumps({"entry": entry, "turns": python_turns, "answers": case.answers})


def _render_python(call: BfclCall) -> str:
    name, arguments = call
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _build_comparison(case: MultiTurnCase, kind: str, turns: TurnCalls, checker_valid: bool) -> CheckerComparison:
    mistake = find_mistake(case, turns)
    message = f"turn {mistake.turn + 1}: {mistake.message}" if mistake else ""
    return CheckerComparison(case.id, case.category, kind, checker_valid, mistake is None, message)
