"""Whether a value is the one that was asked for: by JSON equality, or by what a matcher allows.

A matcher is an object with one of the keys $any_of (a list of values or matchers), $type (a JSON type, or a list of
them), $subset (an object whose members must be there, among others) and $exact (a value taken as it stands). Beside any
of them `"$optional": true` lets the value be left out."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from toolbench.engine.json_paths import json_path, member_path
from toolbench.evals.judging.messages import json_type, shown

ANY_OF, TYPE, SUBSET, EXACT, OPTIONAL = "$any_of", "$type", "$subset", "$exact", "$optional"
MATCHERS = (ANY_OF, TYPE, SUBSET, EXACT)
TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_PYTHON: Mapping[str, type] = {"string": str, "array": list, "object": dict}
_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Wrong:
    """A JSON path and half a sentence: `"Paris" instead of "Berlin"`."""

    path: str
    says: str


def is_matcher(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and any(key in wanted for key in (*MATCHERS, OPTIONAL))


def may_be_left_out(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and wanted.get(OPTIONAL) is True


def mismatches(wanted: Any, given: Any, path: str = "$") -> Iterator[Wrong]:
    """Everything that differs, in the order of `wanted`; nothing when the value is right."""
    if is_matcher(wanted):
        yield from _against_matcher(wanted, given, path)
    elif isinstance(wanted, Mapping):
        yield from _against_object(wanted, given, path, extra=False)
    elif isinstance(wanted, list):
        yield from _against_list(wanted, given, path)
    elif not same(wanted, given):
        yield Wrong(path, f"{shown(given)} instead of {shown(wanted)}")


def same(one: Any, other: Any) -> bool:
    """JSON equality: 1 is 1.0, true is not 1, the order of members does not matter, that of items does."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def matcher_faults(wanted: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Where a value to match is written wrongly: the place and a sentence."""
    if len(place) > _DEEPEST:
        yield place, "This is nested too deeply."
    elif is_matcher(wanted):
        yield from _faults_of_matcher(wanted, place)
    elif isinstance(wanted, Mapping):
        for key, value in wanted.items():
            yield from matcher_faults(value, (*place, key))
    elif isinstance(wanted, list):
        for number, value in enumerate(wanted):
            yield from matcher_faults(value, (*place, number))


def _against_matcher(wanted: Mapping[str, Any], given: Any, path: str) -> Iterator[Wrong]:
    if ANY_OF in wanted and not any(not list(mismatches(one, given, path)) for one in wanted[ANY_OF]):
        yield Wrong(path, f"{shown(given)} is none of {shown(wanted[ANY_OF])}")
    if TYPE in wanted and not any(_is_of(given, name) for name in _listed(wanted[TYPE])):
        yield Wrong(path, f"{json_type(given)} instead of {' or '.join(_listed(wanted[TYPE]))}")
    if SUBSET in wanted:
        yield from _against_object(wanted[SUBSET], given, path, extra=True)
    if EXACT in wanted and not same(wanted[EXACT], given):
        yield Wrong(path, f"{shown(given)} instead of {shown(wanted[EXACT])}")


def _against_object(wanted: Mapping[str, Any], given: Any, path: str, *, extra: bool) -> Iterator[Wrong]:
    if not isinstance(given, Mapping):
        yield Wrong(path, f"{json_type(given)} instead of an object")
        return
    for key, value in wanted.items():
        if key in given:
            yield from mismatches(value, given[key], member_path(path, key))
        elif not may_be_left_out(value):
            yield Wrong(member_path(path, key), "missing")
    if not extra:
        yield from (Wrong(member_path(path, key), "was not asked for") for key in given if key not in wanted)


def _against_list(wanted: list[Any], given: Any, path: str) -> Iterator[Wrong]:
    if not isinstance(given, list):
        yield Wrong(path, f"{json_type(given)} instead of an array")
    elif len(given) != len(wanted):
        yield Wrong(path, f"{len(given)} items instead of {len(wanted)}")
    else:
        for number, (one, other) in enumerate(zip(wanted, given, strict=True)):
            yield from mismatches(one, other, f"{path}{json_path([number])[1:]}")


def _is_of(given: Any, name: str) -> bool:
    if isinstance(given, bool) or given is None:
        return name == ("null" if given is None else "boolean")
    if isinstance(given, int | float):
        return name == "number" or (name == "integer" and float(given).is_integer())
    return name in _PYTHON and isinstance(given, _PYTHON[name])


def _listed(names: Any) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _faults_of_matcher(wanted: Mapping[str, Any], place: tuple[str | int, ...]) -> Iterator[tuple[Any, str]]:
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
            yield from matcher_faults(option, (*place, ANY_OF, number))
    names = wanted.get(TYPE, "null")
    if not (isinstance(names, str) or (isinstance(names, list) and names)) or set(_listed(names)) - set(TYPES):
        yield (*place, TYPE), f"$type is one or several of {', '.join(TYPES)}."
    if not isinstance(wanted.get(SUBSET, {}), Mapping):
        yield (*place, SUBSET), "$subset takes an object."
    else:
        yield from matcher_faults(wanted.get(SUBSET, {}), (*place, SUBSET))
