"""Faults that a test case may give its simulated tools: {"kind": name} with the fields of the kind.

The kinds are in evals/tool_faults.py. A fault affects the first `times` calls of its tool (default 1). There are two
exceptions: a fault of the kind `refuses` affects every call whose `argument` does not begin with `prefix`, and one of
the kind `oversized` with `argument` and `most` affects every call whose `argument` is no integer or is greater than
`most`. `seconds` is the delay of a `slow` tool, `rows` the number of rows of an `oversized` answer.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolbench.evals.causes.table import classify_envelope
from toolbench.evals.tool_faults import ERROR_CODE_BY_FAULT, FAULT_BY_KIND
from toolbench.evals.user_cases.definition import TOOL_TIMEOUT, UserCase
from toolbench.evals.user_cases.number_checks import is_seconds, is_whole_number

MAX_TIMES = 99
MAX_SECONDS = 30
MAX_ROWS = 2000
_REQUIRED_FIELDS: Mapping[str, tuple[str, ...]] = {
    "refuses": ("argument", "prefix"),
    "slow": ("seconds",),
    "oversized": ("rows",),
}
# Any other kind may have `times`.
_OPTIONAL_FIELDS: Mapping[str, tuple[str, ...]] = {"refuses": (), "oversized": ("argument", "most", "times")}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


# A test of the value and a description of valid values, by field.
_CHECK_BY_FIELD: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "times": (lambda value: is_whole_number(value, 1, MAX_TIMES), f"a whole number from 1 to {MAX_TIMES}"),
    "rows": (lambda value: is_whole_number(value, 1, MAX_ROWS), f"a whole number from 1 to {MAX_ROWS}"),
    "most": (lambda value: is_whole_number(value, 1, MAX_ROWS), f"a whole number from 1 to {MAX_ROWS}"),
    "seconds": (lambda value: is_seconds(value, MAX_SECONDS), f"a number of seconds up to {MAX_SECONDS}"),
    "argument": (_is_text, "the name of an argument"),
    "prefix": (_is_text, "a text"),
}


def iter_fault_problems(fault: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each mistake in a fault, as the path to it in the fault and a sentence."""
    kind = fault.get("kind") if isinstance(fault, Mapping) else None
    if not isinstance(kind, str) or kind not in FAULT_BY_KIND:
        yield (), f"fault must be an object whose kind is one of {', '.join(FAULT_BY_KIND)}."
        return
    required = _REQUIRED_FIELDS.get(kind, ())
    allowed = (*required, *_OPTIONAL_FIELDS.get(kind, ("times",)))
    for name in fault:
        if name not in ("kind", *allowed):
            yield (str(name),), f"A fault of kind {kind} has no {name}; it may have {', '.join(allowed)}."
        elif name != "kind" and not _CHECK_BY_FIELD[name][0](fault[name]):
            yield (name,), f"{name} takes {_CHECK_BY_FIELD[name][1]}."
    yield from (((), f"{kind} needs {name}.") for name in required if name not in fault)
    if ("most" in fault) != ("argument" in fault) and kind == "oversized":
        yield (), "oversized takes argument and most together."


def list_fault_codes(case: UserCase) -> tuple[str, ...]:
    """Return the error codes of the calls that the faults of a case make fail, each code once."""
    return tuple(dict.fromkeys(code for code, _ in _iter_codes(case)))


def list_fault_causes(case: UserCase) -> tuple[str, ...]:
    """Return the causes of the faults that make calls fail, each as often as its `times` says (default 1)."""
    return tuple(classify_envelope(code) for code, times in _iter_codes(case) for _ in range(times))


def _iter_codes(case: UserCase) -> Iterator[tuple[str, int]]:
    """Yield the error code of each fault that makes calls fail, and its `times` (1 if absent).

    A slow tool makes calls fail only if the case has a time limit for tools and the delay reaches it. An oversized
    answer is assumed to exceed the size limit.
    """
    for entry in case.results.values():
        fault = entry.get("fault", {})
        timeout = case.settings.get(TOOL_TIMEOUT, MAX_SECONDS + 1)
        answers_in_time = fault.get("kind") == "slow" and fault["seconds"] < timeout
        if not answers_in_time and (code := ERROR_CODE_BY_FAULT.get(fault.get("kind", ""))):
            yield code, fault.get("times", 1)
