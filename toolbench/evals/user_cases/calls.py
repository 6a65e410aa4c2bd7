"""Comparison of the calls made with the expected calls, argument by argument."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolbench.engine.events import LoopResult
from toolbench.engine.json_paths import build_member_path
from toolbench.evals.call_matching import NO_MATCH, match_calls
from toolbench.evals.expected_calls import ExpectedCalls, ExpectedToolCall
from toolbench.evals.json_pointers import find_pointer_value
from toolbench.evals.record_counts import RecordedCall, is_valid_call, iter_calls
from toolbench.evals.scenarios.behaviours import BEHAVIOURS, Behaviour
from toolbench.evals.types import Check
from toolbench.evals.user_cases.definition import CaseExpectation, ExpectedCall, UserCase
from toolbench.evals.user_cases.fault_rows import list_fault_causes
from toolbench.evals.user_cases.matchers import Mismatch, is_optional, iter_mismatches

_MAX_NAMED_CALLS = 1000  # limit of `times`, which may be any number, when a check's calls are listed; runs make fewer
_WRONG_CALL_COST, _WRONG_ARGUMENT_COST, _FAILED_CALL_COST = 1e4, 1e2, 1.0  # each outweighs 99 of the next cheaper one


@dataclass(frozen=True, slots=True)
class CallPair:
    """An expected call and the call matched with it.

    Attributes:
        made: The call that was made; None if none was matched.
        mismatches: The mismatches of each argument that is expected or given, by name; empty for a right argument.
            There are no entries if no call was matched.
    """

    expected: ExpectedCall
    made: RecordedCall | None
    mismatches: dict[str, tuple[Mismatch, ...]]


@dataclass(frozen=True, slots=True)
class CallComparison:
    """The result of matching the calls of a trial with the expected ones.

    Attributes:
        pairs: A pair for each expected call, in order.
        others: The calls that were not matched, except failed calls whose tool succeeded in a later call.
    """

    pairs: tuple[CallPair, ...]
    others: tuple[RecordedCall, ...]


def compare_calls(expect: CaseExpectation, loop_result: LoopResult) -> CallComparison:
    """Return the calls of a trial, matched with the expected ones.

    As many valid calls as possible are matched; a valid call may have failed. Among matchings of equally many calls,
    the one with the fewest wrong calls is chosen, then the one with the fewest wrong arguments, then the one with the
    fewest failed calls. If the order matters, calls are matched only in the order of the expected ones. A failed call
    whose tool succeeded in a later call is ignored, unless it has the right arguments of an expected call.
    """
    made = tuple(iter_calls(loop_result))
    last_successes = {call.tool: index for index, call in enumerate(made) if call.ok}
    recovered = {index for index, call in enumerate(made) if not call.ok and index < last_successes.get(call.tool, -1)}
    costs = [
        [_compute_cost(expected_call, call, is_recovered=index in recovered) for index, call in enumerate(made)]
        for expected_call in expect.calls
    ]
    matches = match_calls(costs, ordered=expect.ordered)
    pairs = tuple(
        _build_pair(expected_call, made[matches[number]] if number in matches else None)
        for number, expected_call in enumerate(expect.calls)
    )
    left_out = recovered | set(matches.values())
    return CallComparison(pairs, tuple(call for index, call in enumerate(made) if index not in left_out))


def iter_checks(comparison: CallComparison, *, are_others_allowed: bool) -> Iterator[Check]:
    """Yield checks of every expected call and of the arguments of its match, then one that no other call is made.

    Args:
        comparison: The matched calls.
        are_others_allowed: Whether other calls are permitted; if they are, the last check is omitted.
    """
    totals = Counter(pair.expected.name for pair in comparison.pairs)
    numbers: Counter[str] = Counter()
    invalid_names = {call.tool for call in comparison.others if not is_valid_call(call.result)}
    for pair in comparison.pairs:
        name = pair.expected.name
        numbers[name] += 1
        label = f"{name} ({numbers[name]})" if totals[name] > 1 else name
        is_invalid = pair.made is None and name in invalid_names
        yield Check(f"{label} is called", pair.made is not None, "its call is not valid" if is_invalid else "")
        for argument, mismatches in pair.mismatches.items():
            detail = "; ".join(f"{mismatch.path}: {mismatch.message}" for mismatch in mismatches)
            yield Check(f"{label} {build_member_path('$', argument)}", not mismatches, detail)
    if not are_others_allowed:
        other_names = [call.tool for call in comparison.others]
        detail = f"also called: {', '.join(other_names)}" if other_names else ""
        yield Check("no other call", not other_names, detail)


def build_expected_calls(case: UserCase) -> ExpectedCalls:
    """Return the calls that a test case expects."""
    calls = tuple(
        ExpectedToolCall(call.name, partial(_is_match, call), partial(_list_wrong_paths, call), call.arguments)
        for call in case.expect.calls
    )
    needs_reply = case.expect.no_call or any(kind.startswith("answer_") for row in case.expect.checks for kind in row)
    behaviour = BEHAVIOURS.get(case.behaviour, Behaviour())
    parallel_calls = max((row["together"] for row in case.expect.checks if "together" in row), default=1)
    return ExpectedCalls(
        _needs_call(case),
        calls,
        tools=(*_list_names(calls), *_iter_named_tools(case)),
        provoked_causes=(*behaviour.provoked_causes, *list_fault_causes(case)),
        parallel_calls=max(parallel_calls, behaviour.parallel_calls),
        needs_reply=needs_reply,
        is_ordered=case.expect.ordered,
        permits_others=case.expect.others,
    )


def _list_names(calls: Sequence[ExpectedToolCall]) -> tuple[str, ...]:
    return tuple(call.tool for call in calls)


def _iter_named_tools(case: UserCase) -> Iterator[str]:
    """Yield the tools that checks require to be called, once for each call beyond the expected calls.

    A `called` row requires at most _MAX_NAMED_CALLS calls here. Both tools of a `before` row are yielded, although its
    check holds without a call of the second one.
    """
    expected_counts = Counter(call.name for call in case.expect.calls)
    for row in case.expect.checks:
        if tool := row.get("called"):
            yield from [tool] * (min(row.get("times", 1), _MAX_NAMED_CALLS) - expected_counts[tool])
        yield from (tool for tool in row.get("before", ()) if not expected_counts[tool])


def compare_arguments(expected: ExpectedCall, arguments: dict[str, object]) -> dict[str, tuple[Mismatch, ...]]:
    """Return the mismatches of a call's arguments.

    Args:
        expected: The expected call.
        arguments: The arguments of the call that was made.

    Returns:
        The mismatches of each argument that is expected or given, by name; empty for a right argument. If
        `expected.loose`, an unexpected argument with the value null is ignored.
    """
    mismatches: dict[str, tuple[Mismatch, ...]] = {}
    if expected.loose:
        arguments = {
            name: value for name, value in arguments.items() if value is not None or name in expected.arguments
        }
    for name, expected_value in expected.arguments.items():
        path = build_member_path("$", name)
        if name in arguments:
            mismatches[name] = _find_mismatches(expected, expected_value, arguments[name], path)
        else:
            mismatches[name] = () if is_optional(expected_value) else (Mismatch(path, "missing"),)
    if not expected.more:
        extra = (name for name in arguments if name not in expected.arguments)
        mismatches |= {name: (Mismatch(build_member_path("$", name), "not expected"),) for name in extra}
    return mismatches


def _find_mismatches(expected: ExpectedCall, expected_value: Any, given: Any, path: str) -> tuple[Mismatch, ...]:
    mismatches = tuple(iter_mismatches(expected_value, given, path))
    if mismatches and expected.loose and not any(iter_mismatches(_normalise(expected_value), _normalise(given), path)):
        return ()
    return mismatches


def _normalise(value: Any) -> Any:
    """Return the value with its strings, but not its keys, in lower case and with single spaces between words."""
    if isinstance(value, str):
        return " ".join(value.split()).casefold()
    if isinstance(value, list):
        return [_normalise(item) for item in value]
    return {key: _normalise(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _is_match(expected: ExpectedCall, arguments: dict[str, object]) -> bool:
    return not any(compare_arguments(expected, arguments).values())


def _list_wrong_paths(expected: ExpectedCall, arguments: dict[str, object]) -> tuple[str, ...]:
    by_argument = compare_arguments(expected, arguments)
    return tuple(mismatch.path for mismatches in by_argument.values() for mismatch in mismatches)


def _needs_call(case: UserCase) -> bool | None:
    """Return whether the case needs a call; None if its expectations do not determine it."""
    expect = case.expect
    changes_state = any(
        list(iter_mismatches(expected_value, find_pointer_value(case.initial, pointer)))
        for pointer, expected_value in expect.state.items()
    )
    names_call = any("before" in row or (row.get("called") and row.get("times") != 0) for row in expect.checks)
    if expect.calls or changes_state or names_call:
        return True
    forbids_calls = any(row.get("calls_at_most") == 0 for row in expect.checks)
    return False if expect.no_call or forbids_calls else None


def _build_pair(expected: ExpectedCall, made: RecordedCall | None) -> CallPair:
    return CallPair(expected, made, compare_arguments(expected, made.result.arguments or {}) if made else {})


def _compute_cost(expected: ExpectedCall, made: RecordedCall, *, is_recovered: bool) -> float:
    if made.tool != expected.name or not is_valid_call(made.result):
        return NO_MATCH
    cost = _FAILED_CALL_COST * (not made.ok)
    wrong_count = sum(map(bool, compare_arguments(expected, made.result.arguments or {}).values()))
    if not wrong_count:
        return cost
    return NO_MATCH if is_recovered else cost + _WRONG_CALL_COST + _WRONG_ARGUMENT_COST * wrong_count
