"""Calls written as tagged keys and values."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from xml.sax.saxutils import unescape

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.coercion import is_list, listed_items, of_kinds, together, typed_items, typed_value
from toolbench.engine.formats.definition import FoundCall, Reader, Reading
from toolbench.engine.formats.extents import value_end
from toolbench.engine.formats.json_calls import as_object, clean_name
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.values import Known

UNREADABLE, CUT = Reading(problem="call_unreadable"), Reading(problem="call_cut")
_WRAPPED = ("arguments", "input")  # single parameters in which models hide all the others
Typed: TypeAlias = Callable[[str, str, str, Known], Any]


@dataclass(frozen=True, slots=True)
class Tagged:
    """`name` matches at the beginning of the block and gives the group `name`. `key` finds where a value begins and
    gives the group `key`, and perhaps `kind`: the value's JSON type, by way of `kinds`, which goes before the schema.
    `value_end` ends a value; `end` may end the call. `lines` takes one line break off both ends of a value; with
    `escaped` markup in it stands as entities. A block without keys may hold the arguments as JSON. A group `id` beside
    the name is the call's. `attribute` reads what stands in a name or key, `plain` what stands in a value that says no
    type. A group `opened` in `key` that matches nothing says that the tag before the value is missing."""

    name: re.Pattern[str]
    key: re.Pattern[str]
    value_end: str
    end: str = ""
    lines: bool = False
    escaped: bool = False
    kinds: Mapping[str, str] = field(default_factory=dict)
    attribute: Callable[[str], str] = str
    plain: Callable[[str], str] = str

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        heading = self.name.match(body)
        name = self.attribute(clean_name(heading["name"])) if heading else ""
        if heading is None or not name:
            return CUT if cut else UNREADABLE
        rest = body[heading.end() :]
        if rest.lstrip().startswith("{"):
            return _json_arguments(name, rest.lstrip(), self.value_end, cut=cut)
        if cut:
            return CUT
        notes: set[str] = set()
        arguments = self._arguments(name, rest, known, notes)
        if arguments is None:
            return UNREADABLE
        if unwrapped := _unwrapped(arguments, name, known):
            return Reading((FoundCall(name, unwrapped),), notes=("arguments_wrapped",))
        return Reading((FoundCall(name, arguments, heading.groupdict().get("id") or ""),), notes=tuple(sorted(notes)))

    def _arguments(self, tool: str, text: str, known: Known, notes: set[str]) -> dict[str, Any] | None:
        """By key. None when something else than keys and values stands there."""
        opened = self._opened(tool, text, known)
        if any(map(_lacks_tag, opened)):
            notes.add("tag_missing")
        leading = text[: opened[0].start()] if opened else text.replace(self.end, "") if self.end else text
        if leading.strip() or not opened:
            return None if leading.strip() else {}
        ends = [*(found.start() for found in opened[1:]), len(text)]
        if any(self._is_doubtful(found, text[found.end() : end]) for found, end in zip(opened, ends, strict=True)):
            return None
        return together(
            (
                (self.attribute(found["key"].strip()), (found, text[found.end() : end]))
                for found, end in zip(opened, ends, strict=True)
            ),
            lambda key, one: self._value(tool, *one, known, typed_value),
            lambda key, one: listed_items(self._value(tool, *one, known, typed_items)),
            lambda key: is_list(tool, key, known),
            notes,
        )

    def _is_doubtful(self, found: re.Match[str], value: str) -> bool:
        """Return whether a tag is lost so that nobody can tell where a value begins or ends: it holds a part of its
        end, or blanks stand where the tag was."""
        if self.value_end in value:
            return _blank_end(found[0]) not in ("", "\n") or self._has_stray_end(value)
        written = self._unclosed(value)
        lost = any(token in written for token in _TOKEN.findall(self.value_end))
        return lost or _blank_end(found[0]) not in ("", "\n") or _blank_end(written) != ""

    def _unclosed(self, value: str) -> str:
        """Return a value without its end, and without the line break that stands behind the end; with `lines`, the
        value's own goes too."""
        last = value.rfind(self.end) if self.end else -1
        value = (value[:last] if last >= 0 else value).removesuffix("\n")
        return value.removesuffix("\n") if self.lines else value

    def _has_stray_end(self, value: str) -> bool:
        """Return whether a value ends twice, the first time where no other value begins, or another value begins in
        it that does not end: a tag between is lost. An end in the middle of a line is text where values stand on lines
        of their own."""
        before = value[: max(value.rfind(self.value_end), 0)]
        end = f"\n{self.value_end}\n" if self.lines else self.value_end
        keys = list(self.key.finditer(before))
        opened = sum(not _lacks_tag(found) for found in keys)
        return before.count(end) > len(keys) or opened > before.count(self.value_end)

    def _opened(self, tool: str, text: str, known: Known) -> list[re.Match[str]]:
        """Where values begin. In a value that is not closed, only a parameter that the tool has begins a new one."""
        schema = known.schemas.get(tool, {}).get("properties")
        opened: list[re.Match[str]] = []
        closed = -1  # the first end of a value at or behind the last opening
        for found in self.key.finditer(text):
            known_key = not isinstance(schema, dict) or self.attribute(found["key"].strip()) in schema
            lost_both = bool(opened) and _lacks_tag(found) and _lacks_tag(opened[-1])
            if not opened or closed < found.start() or (known_key and (not _lacks_tag(found) or lost_both)):
                opened.append(found)
                if closed < found.end():
                    closed = text.find(self.value_end, found.end())
                    closed = closed if closed >= 0 else len(text)
        return opened

    def _value(self, tool: str, found: re.Match[str], text: str, known: Known, typed: Typed) -> Any:
        last = text.rfind(self.value_end)
        value = text[:last] if last >= 0 else self._unclosed(text)
        if self.lines:
            value = value.removeprefix("\n")
            value = value.removesuffix("\n") if last >= 0 else value
        if self.escaped:
            value = unescape(value, {"&quot;": '"'})
        kind = found.groupdict().get("kind")
        kind = self.kinds.get(kind, kind) if kind else ""
        if kind:
            return value if kind == "string" else of_kinds(value, kind.split("|"))
        return typed(self.plain(value), tool, self.attribute(found["key"].strip()), known)


_TOKEN = re.compile(r"<[^<>]+>")


def _blank_end(text: str) -> str:
    return text[len(text.rstrip()) :]


def _lacks_tag(found: re.Match[str]) -> bool:
    """Whether a key stands without the tag that opens its value, where a format can tell."""
    return found.groupdict().get("opened", "") is None


@dataclass(frozen=True, slots=True)
class FirstOf:
    """Asks several readers in turn; the first that reads a call counts, else the first's word."""

    readers: Sequence[Reader]

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        said = [reader(body, known, cut=cut) for reader in self.readers]
        return next((reading for reading in said if reading.calls), said[0])


@dataclass(frozen=True, slots=True)
class Attributes:
    """Reads a name and `key=value` pairs behind it, values in quotes if they have blanks in them."""

    def __call__(self, body: str, known: Known, *, cut: bool) -> Reading:
        name, _, rest = body.strip().partition(" ")
        if cut or not _NAME.fullmatch(name) or not _PAIRS.fullmatch(rest):
            return CUT if cut else UNREADABLE
        notes = {"attributes"}
        pairs = ((found["key"], _unquoted(found["value"])) for found in _PAIR.finditer(rest))
        arguments = typed_by_key(pairs, name, known, notes)
        return Reading((FoundCall(name, arguments),), notes=tuple(sorted(notes)))


_NAME = re.compile(r"[\w.:/-]+")
_PAIR = re.compile(r"""\s*(?P<key>[\w.-]+)=(?P<value>"[^"]*"|'[^']*'|[^\s"']+)(?=\s|$)""")
_PAIRS = re.compile(rf"(?:{_PAIR.pattern.replace('?P<key>', '?:').replace('?P<value>', '?:')})+\s*")


def typed_by_key(found: Iterable[tuple[str, str]], tool: str, known: Known, notes: set[str]) -> dict[str, Any]:
    """Return values that carry no type by their keys, as `together` puts those of one key together."""
    return together(
        found,
        lambda key, text: typed_value(text, tool, key, known),
        lambda key, text: typed_items(text, tool, key, known),
        lambda key: is_list(tool, key, known),
        notes,
    )


def _unquoted(value: str) -> str:
    return value[1:-1] if value[0] in "\"'" else value


def _json_arguments(name: str, text: str, stray: str, *, cut: bool) -> Reading:
    """Read arguments that are JSON. An object with `stray` behind it is a value whose opening tag is lost."""
    end = value_end(text, 0)
    if end is not None and stray and text.find(stray, end) >= 0:
        return UNREADABLE
    if end is None:
        return CUT if cut else UNREADABLE
    try:
        arguments = as_object(read_value(text[:end]))
    except BadJson:
        return UNREADABLE
    return UNREADABLE if arguments is None else Reading((FoundCall(name, arguments),))


def _unwrapped(arguments: dict[str, Any], tool: str, known: Known) -> dict[str, Any] | None:
    """All arguments, where they were hidden as JSON in a single parameter that the tool does not have."""
    key = next(iter(arguments), "")
    properties = known.schemas.get(tool, {}).get("properties")
    if len(arguments) != 1 or key not in _WRAPPED or not isinstance(properties, dict) or key in properties:
        return None
    return as_object(arguments[key])
