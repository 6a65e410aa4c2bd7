"""Comparison of a value with an expected one: by JSON equality, or by a matcher.

A matcher is an object with one of the keys $any_of (a list of values or matchers), $type (a JSON type, or a list of
them), $subset (an object whose members must be present, among others) and $exact (a literal value). With any of them,
`"$optional": true` permits the value to be missing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.json_paths import build_member_path, render_json_path
from toolbench.evals.judging.messages import name_json_type, render_short

ANY_OF, TYPE, SUBSET, EXACT, OPTIONAL = "$any_of", "$type", "$subset", "$exact", "$optional"
MATCHERS = (ANY_OF, TYPE, SUBSET, EXACT)
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_PYTHON_TYPES: Mapping[str, type] = {"string": str, "array": list, "object": dict}
_MAX_DEPTH = 60


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A difference: a JSON path and half a sentence, such as `"Paris" instead of "Berlin"`."""

    path: str
    says: str


def is_matcher(wanted: Any) -> bool:
    """Return whether an expected value is a matcher."""
    return isinstance(wanted, Mapping) and any(key in wanted for key in (*MATCHERS, OPTIONAL))


def is_optional(wanted: Any) -> bool:
    """Return whether an expected value may be missing."""
    return isinstance(wanted, Mapping) and wanted.get(OPTIONAL) is True


def iter_mismatches(wanted: Any, given: Any, path: str = "$") -> Iterator[Mismatch]:
    """Yield every difference, in the order of `wanted`; none if the value is right."""
    if is_matcher(wanted):
        yield from _compare_with_matcher(wanted, given, path)
    elif isinstance(wanted, Mapping):
        yield from _compare_with_object(wanted, given, path, extra=False)
    elif isinstance(wanted, list):
        yield from _compare_with_list(wanted, given, path)
    elif not is_same_json(wanted, given):
        yield Mismatch(path, f"{render_short(given)} instead of {render_short(wanted)}")


def is_same_json(one: Any, other: Any) -> bool:
    """Return JSON equality: 1 is 1.0, true is not 1, the order of items matters and that of members does not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(is_same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same_json, one, other))
    return bool(one == other)


def find_matcher_problems(
    wanted: Any, place: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield each mistake in an expected value, as its place and a sentence."""
    if len(place) > _MAX_DEPTH:
        yield place, "This is nested too deeply."
    elif is_matcher(wanted):
        yield from _find_matcher_key_problems(wanted, place)
    elif isinstance(wanted, Mapping):
        for key, value in wanted.items():
            yield from find_matcher_problems(value, (*place, key))
    elif isinstance(wanted, list):
        for number, value in enumerate(wanted):
            yield from find_matcher_problems(value, (*place, number))


def _compare_with_matcher(wanted: Mapping[str, Any], given: Any, path: str) -> Iterator[Mismatch]:
    if ANY_OF in wanted and not any(not list(iter_mismatches(one, given, path)) for one in wanted[ANY_OF]):
        yield Mismatch(path, f"{render_short(given)} is none of {render_short(wanted[ANY_OF])}")
    if TYPE in wanted and not any(_is_json_type(given, name) for name in _to_list(wanted[TYPE])):
        yield Mismatch(path, f"{name_json_type(given)} instead of {' or '.join(_to_list(wanted[TYPE]))}")
    if SUBSET in wanted:
        yield from _compare_with_object(wanted[SUBSET], given, path, extra=True)
    if EXACT in wanted and not is_same_json(wanted[EXACT], given):
        yield Mismatch(path, f"{render_short(given)} instead of {render_short(wanted[EXACT])}")


def _compare_with_object(wanted: Mapping[str, Any], given: Any, path: str, *, extra: bool) -> Iterator[Mismatch]:
    if not isinstance(given, Mapping):
        yield Mismatch(path, f"{name_json_type(given)} instead of an object")
        return
    for key, value in wanted.items():
        if key in given:
            yield from iter_mismatches(value, given[key], build_member_path(path, key))
        elif not is_optional(value):
            yield Mismatch(build_member_path(path, key), "missing")
    if not extra:
        yield from (Mismatch(build_member_path(path, key), "was not asked for") for key in given if key not in wanted)


def _compare_with_list(wanted: list[Any], given: Any, path: str) -> Iterator[Mismatch]:
    if not isinstance(given, list):
        yield Mismatch(path, f"{name_json_type(given)} instead of an array")
    elif len(given) != len(wanted):
        yield Mismatch(path, f"{len(given)} items instead of {len(wanted)}")
    else:
        for number, (one, other) in enumerate(zip(wanted, given, strict=True)):
            yield from iter_mismatches(one, other, f"{path}{render_json_path([number])[1:]}")


def _is_json_type(given: Any, name: str) -> bool:
    if isinstance(given, bool) or given is None:
        return name == ("null" if given is None else "boolean")
    if isinstance(given, int | float):
        return name == "number" or (name == "integer" and float(given).is_integer())
    return name in _PYTHON_TYPES and isinstance(given, _PYTHON_TYPES[name])


def _to_list(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _find_matcher_key_problems(wanted: Mapping[str, Any], place: tuple[str | int, ...]) -> Iterator[tuple[Any, str]]:
    for key in wanted:
        if key not in (*MATCHERS, OPTIONAL):
            yield (*place, key), f"{key} cannot stand beside a matcher: there are {', '.join((*MATCHERS, OPTIONAL))}."
    if not any(key in wanted for key in MATCHERS):
        yield place, f"{OPTIONAL} needs a matcher beside it: one of {', '.join(MATCHERS)}."
    options = wanted.get(ANY_OF, [None])
    if not isinstance(options, list) or not options:
        yield (*place, ANY_OF), "$any_of takes a list of at least one value."
    else:
        for number, option in enumerate(options):
            yield from find_matcher_problems(option, (*place, ANY_OF, number))
    names = wanted.get(TYPE, "null")
    if not (isinstance(names, str) or (isinstance(names, list) and names)) or set(_to_list(names)) - set(TYPES):
        yield (*place, TYPE), f"$type is one or several of {', '.join(TYPES)}."
    if not isinstance(wanted.get(SUBSET, {}), Mapping):
        yield (*place, SUBSET), "$subset takes an object."
    else:
        yield from find_matcher_problems(wanted.get(SUBSET, {}), (*place, SUBSET))
