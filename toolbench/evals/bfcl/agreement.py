"""Comparison of Toolbench's rules with BFCL's checker, on golden answers and on changed ones."""

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolbench.evals.bfcl.ask_checker import check_answers
from toolbench.evals.bfcl.ast_rules import find_mistake
from toolbench.evals.bfcl.cases import BfclCase
from toolbench.evals.bfcl.golden_answers import BfclCall, build_golden_calls


@dataclass(frozen=True, slots=True)
class CheckerComparison:
    """The judgement of one answer to one case by BFCL's checker and by Toolbench.

    Attributes:
        kind: The change made to the golden answer; `golden` for none.
        message: The mistake that Toolbench found; "" for none.
    """

    case_id: str
    category: str
    kind: str
    checker_accepts: bool
    toolbench_accepts: bool
    message: str

    @property
    def agrees(self) -> bool:
        """Return whether the checker and Toolbench give the same judgement."""
        return self.checker_accepts is self.toolbench_accepts


def compare_with_checker(cases: Iterable[BfclCase]) -> tuple[CheckerComparison, ...]:
    """Return the comparison for each answer of `iter_answers` to each case, in order.

    Raises:
        NotInstalledError: BFCL is not installed.
        RuntimeError: The process of BFCL's checker failed.
    """
    requests = [(case, kind, calls) for case in cases for kind, calls in iter_answers(case)]
    verdicts = check_answers([(case, calls) for case, _, calls in requests])
    return tuple(
        _build_comparison(case, kind, calls, verdict.valid)
        for (case, kind, calls), verdict in zip(requests, verdicts, strict=True)
    )


def iter_answers(case: BfclCase) -> Iterator[tuple[str, tuple[BfclCall, ...]]]:
    """Yield the kind and the calls of the golden answer, then of answers with one change each.

    A change may leave the answer as it is, for instance the reversal of a single call.
    """
    golden = build_golden_calls(case)
    yield "golden", golden
    yield "no call", ()
    yield "a call twice", (*golden, golden[-1])
    yield "another function", (("no_such_function", golden[0][1]), *golden[1:])
    yield "reversed", golden[::-1]
    name, arguments = golden[-1]
    yield "an argument more", (*golden[:-1], (name, {**arguments, "not_expected": 1}))
    for key, value in arguments.items():
        other_arguments = {other_key: other for other_key, other in arguments.items() if other_key != key}
        yield f"{key} missing", (*golden[:-1], (name, other_arguments))
        for number, changed in enumerate(_iter_changes(value)):
            yield f"{key} changed ({number})", (*golden[:-1], (name, {**arguments, key: changed}))


def _iter_changes(value: Any) -> Iterator[Any]:
    """Yield values of all JSON types, then variants of the value; some may equal the value."""
    yield from ("another text", "", 0, 1, -7.5, True, False, None, [], {}, [value], {"a": value})
    if isinstance(value, str):
        yield from (value.upper(), f" {value}.", value.replace(" ", "-"), value[:-1])
    elif isinstance(value, bool):
        yield from (not value, str(value))
    elif isinstance(value, int | float):
        yield from (value + 1, float(value), int(value), str(value))
    elif isinstance(value, list):
        yield from (value[::-1], [*value, "more"], value[:-1], [str(item) for item in value])
    elif isinstance(value, dict):
        yield {**copy.deepcopy(value), "more": 1}
        yield from ({key: argument for key, argument in value.items() if key != omitted} for omitted in value)
        yield {key: argument.upper() if isinstance(argument, str) else argument for key, argument in value.items()}


def _build_comparison(case: BfclCase, kind: str, calls: tuple[BfclCall, ...], checker_valid: bool) -> CheckerComparison:
    mistake = find_mistake(case.category, case.functions, case.answers, calls)
    message = f"{mistake.argument} {mistake.message}".strip() if mistake else ""
    return CheckerComparison(case.id, case.category, kind, checker_valid, mistake is None, message)
