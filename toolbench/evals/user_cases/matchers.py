"""Comparison of a value with an expected one: by JSON equality, or by a matcher.

A matcher is an object with one or several of the keys $any_of (a list of values or matchers, one of which must match),
$type (a JSON type or a list of them), $subset (an object whose members the value must have) and $exact (a literal
value). Beside any of them, `"$optional": true` permits an argument or a member of an object to be missing. `$optional`
has no effect on a value of the state: a missing one is compared as null.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.json_paths import build_member_path, render_json_path
from toolbench.evals.judging.messages import describe_json_type, render_short

ANY_OF, TYPE, SUBSET, EXACT, OPTIONAL = "$any_of", "$type", "$subset", "$exact", "$optional"
MATCHERS = (ANY_OF, TYPE, SUBSET, EXACT)
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_PYTHON_TYPES: Mapping[str, type] = {"string": str, "array": list, "object": dict}
_MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference from an expected value.

    Attributes:
        path: The JSON path of the difference.
        message: A phrase that follows the path, such as `"Paris" instead of "Berlin"`.
    """

    path: str
    message: str


def is_matcher(expected: Any) -> bool:
    """Return whether an expected value is a matcher."""
    return isinstance(expected, Mapping) and any(key in expected for key in (*MATCHERS, OPTIONAL))


def is_optional(expected: Any) -> bool:
    """Return whether an expected value is a matcher that permits the value to be missing."""
    return isinstance(expected, Mapping) and expected.get(OPTIONAL) is True


def iter_mismatches(expected: Any, given: Any, path: str = "$") -> Iterator[Mismatch]:
    """Yield every difference in the order of `expected`; none if the value is right.

    Members that are not expected come last in their object. Lists of different lengths are one difference.

    Args:
        expected: The expected value, or a matcher.
        given: The value to compare, as the model gave it or as it is in the state.
        path: The JSON path of that value, with which the paths of the differences begin.
    """
    if is_matcher(expected):
        yield from _compare_with_matcher(expected, given, path)
    elif isinstance(expected, Mapping):
        yield from _compare_with_object(expected, given, path, permits_others=False)
    elif isinstance(expected, list):
        yield from _compare_with_list(expected, given, path)
    elif not is_same_json(expected, given):
        yield Mismatch(path, f"{render_short(given)} instead of {render_short(expected)}")


def is_same_json(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal.

    1 equals 1.0, true does not equal 1, and the order of members does not matter.
    """
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(is_same_json(value, second[key]) for key, value in first.items())
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(is_same_json, first, second))
    return bool(first == second)


def iter_matcher_problems(
    expected: Any, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each mistake in the matchers of an expected value, as the path of the mistake and a sentence.

    Args:
        expected: The expected value.
        place: The path of the value, with which the yielded paths begin.
    """
    if len(place) > _MAX_DEPTH:
        yield place, "This is nested too deeply: write it with fewer levels."
    elif is_matcher(expected):
        yield from _iter_matcher_key_problems(expected, place)
    elif isinstance(expected, Mapping):
        for key, value in expected.items():
            yield from iter_matcher_problems(value, (*place, key))
    elif isinstance(expected, list):
        for index, value in enumerate(expected):
            yield from iter_matcher_problems(value, (*place, index))


def _compare_with_matcher(expected: Mapping[str, Any], given: Any, path: str) -> Iterator[Mismatch]:
    if ANY_OF in expected and not any(not list(iter_mismatches(option, given, path)) for option in expected[ANY_OF]):
        yield Mismatch(path, f"{render_short(given)} is none of {render_short(expected[ANY_OF])}")
    if TYPE in expected and not any(_is_json_type(given, name) for name in _to_list(expected[TYPE])):
        yield Mismatch(path, f"{describe_json_type(given)} instead of {' or '.join(_to_list(expected[TYPE]))}")
    if SUBSET in expected:
        yield from _compare_with_object(expected[SUBSET], given, path, permits_others=True)
    if EXACT in expected and not is_same_json(expected[EXACT], given):
        yield Mismatch(path, f"{render_short(given)} instead of {render_short(expected[EXACT])}")


def _compare_with_object(
    expected: Mapping[str, Any], given: Any, path: str, *, permits_others: bool
) -> Iterator[Mismatch]:
    if not isinstance(given, Mapping):
        yield Mismatch(path, f"{describe_json_type(given)} instead of an object")
        return
    for key, value in expected.items():
        if key in given:
            yield from iter_mismatches(value, given[key], build_member_path(path, key))
        elif not is_optional(value):
            yield Mismatch(build_member_path(path, key), "missing")
    if not permits_others:
        yield from (Mismatch(build_member_path(path, key), "not expected") for key in given if key not in expected)


def _compare_with_list(expected: list[Any], given: Any, path: str) -> Iterator[Mismatch]:
    if not isinstance(given, list):
        yield Mismatch(path, f"{describe_json_type(given)} instead of an array")
    elif len(given) != len(expected):
        yield Mismatch(path, f"{len(given)} items instead of {len(expected)}")
    else:
        for index, (expected_item, given_item) in enumerate(zip(expected, given, strict=True)):
            yield from iter_mismatches(expected_item, given_item, f"{path}{render_json_path([index])[1:]}")


def _is_json_type(given: Any, name: str) -> bool:
    if isinstance(given, bool) or given is None:
        return name == ("null" if given is None else "boolean")
    if isinstance(given, int | float):
        return name == "number" or (name == "integer" and (isinstance(given, int) or given.is_integer()))
    return name in _PYTHON_TYPES and isinstance(given, _PYTHON_TYPES[name])


def _to_list(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _iter_matcher_key_problems(expected: Mapping[str, Any], place: tuple[str | int, ...]) -> Iterator[tuple[Any, str]]:
    for key in expected:
        if key not in (*MATCHERS, OPTIONAL):
            yield (*place, key), f"{key} is not allowed beside a matcher: use {', '.join((*MATCHERS, OPTIONAL))}."
    if not any(key in expected for key in MATCHERS):
        yield place, f"{OPTIONAL} needs a matcher beside it: one of {', '.join(MATCHERS)}."
    options = expected.get(ANY_OF, [None])
    if not isinstance(options, list) or not options:
        yield (*place, ANY_OF), "$any_of takes a list of at least one value."
    else:
        for index, option in enumerate(options):
            yield from iter_matcher_problems(option, (*place, ANY_OF, index))
    names = expected.get(TYPE, "null")
    is_name_list = isinstance(names, str) or (isinstance(names, list) and bool(names))
    if not is_name_list or not all(name in TYPES for name in _to_list(names)):
        yield (*place, TYPE), f"$type takes one or several of {', '.join(TYPES)}."
    if not isinstance(expected.get(SUBSET, {}), Mapping):
        yield (*place, SUBSET), "$subset takes an object."
    else:
        yield from iter_matcher_problems(expected.get(SUBSET, {}), (*place, SUBSET))
