"""Calls of Gemma whose texts lack a delimiter, or hold one inside, read by what stands around it."""

import re
from dataclasses import dataclass
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.formats.coercion import kinds_of, value_by
from toolbench.engine.formats.definition import FoundCall
from toolbench.engine.formats.literals import read_value
from toolbench.engine.formats.values import Known

DEEPEST = 32
LONGEST = 16_384  # characters of a block that are looked through
WORD = 64  # characters of a value without a delimiter that may be a number or another word of JSON
KEY = 256  # characters in which a key before a delimiter is looked for
_HEADING = re.compile(r"[\s,]*(?:call)?\s*:\s*(?P<name>[\w.-]+)\s*\{")
_KEY = re.compile(r"[\s,]*(?P<key>[\w.-]+)\s*:\s*")
_NEXT_KEY = re.compile(r",\s*[\w.-]+\s*:")
_KEY_BEFORE = re.compile(r",\s*[\w.-]+\s*:\s*\Z")
_GAP = re.compile(r"[\s,]*")
_ENDING = re.compile(r"\s*(?:[,}\]]|\Z)")
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""", re.DOTALL)


def repaired_calls(body: str, quote: str, known: Known) -> tuple[FoundCall, ...]:
    """Return the calls of a whole block; none where a part of it cannot be understood, or it is too long."""
    if len(body) > LONGEST:
        return ()
    calls: list[FoundCall] = []
    at = 0
    try:
        while named := _HEADING.match(body, at):
            arguments, at = _Values(body, quote, named["name"], known).members(named.end(), 0)
            calls.append(FoundCall(named["name"], arguments))
    except BadJson:
        return ()
    return () if body[at:].strip(" \n,") else tuple(calls)


@dataclass(frozen=True, slots=True)
class _Values:
    """Reads the values in `text`; each method returns a value and the place behind it, or raises BadJson."""

    text: str
    quote: str
    tool: str
    known: Known

    def members(self, at: int, depth: int) -> tuple[dict[str, Any], int]:
        """Read keys and values up to the closing brace; `at` is behind the opening one."""
        values: dict[str, Any] = {}
        while found := _KEY.match(self.text, at):
            if found["key"] in values:
                raise BadJson("repeated_key", "a key that is given twice")
            schema = self.known.parameter(self.tool, found["key"]) if depth == 0 else None
            values[found["key"]], at = self._value(found.end(), depth, schema, in_list=False)
        return values, self._closed(at, "}")

    def _items(self, at: int, depth: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        while (at := self._behind_gap(at)) < len(self.text) and self.text[at] not in "]}":
            value, at = self._value(at, depth, None, in_list=True)
            values.append(value)
        return values, self._closed(at, "]")

    def _closed(self, at: int, sign: str) -> int:
        at = self._behind_gap(at)
        if self.text[at : at + 1] != sign:
            raise BadJson("not_closed", "a value is not closed")
        return at + 1

    def _behind_gap(self, at: int) -> int:
        gap = _GAP.match(self.text, at)
        return gap.end() if gap else at

    def _value(self, at: int, depth: int, schema: object, *, in_list: bool) -> tuple[Any, int]:
        if depth > DEEPEST:
            raise BadJson("too_deep", "nested too deeply")
        if self.text.startswith(self.quote, at):
            return self._delimited(at + len(self.quote), in_list=in_list)
        if self.text[at : at + 1] == "{":
            return self.members(at + 1, depth + 1)
        if self.text[at : at + 1] == "[":
            return self._items(at + 1, depth + 1)
        quoted = _QUOTED.match(self.text, at)
        if quoted and _ENDING.match(self.text, quoted.end()):
            return read_value(quoted.group()), quoted.end()
        return self._bare(at, schema, in_list=in_list)

    def _delimited(self, at: int, *, in_list: bool) -> tuple[str, int]:
        """Read a text from behind its first delimiter. The one that ends it has a comma or bracket behind it; one
        with a key before it begins the next text, so that the end of this one is missing; any other is a quotation
        mark of the text."""
        found = self.text.find(self.quote, at)
        while found >= 0:
            behind = found + len(self.quote)
            if _ENDING.match(self.text, behind):
                return self._plain(at, found), behind
            opened = _KEY_BEFORE.search(self.text, max(at, found - KEY), found)
            if opened and not in_list:
                return self._plain(at, opened.start()), opened.start()
            found = self.text.find(self.quote, behind)
        end = self._bare_end(at, in_list=in_list)
        return self._plain(at, end), end

    def _bare(self, at: int, schema: object, *, in_list: bool) -> tuple[Any, int]:
        """Read a value without a delimiter before it; where one ends it, it is a text."""
        end = self._bare_end(at, in_list=in_list)
        found = self.text.find(self.quote, at)
        if found >= 0 and (found <= end or not _NEXT_KEY.search(self.text, at, found)):
            behind = found + len(self.quote)
            if not _ENDING.match(self.text, behind) or (in_list and self.text.find(",", at, found) >= 0):
                raise BadJson("no_value", "a text begins in the middle of a value")
            return self._plain(at, found), behind
        written = self.text[at:end].strip()
        if not written:
            raise BadJson("no_value", "a key without a value")
        if kinds_of(schema, root := self.known.schemas.get(self.tool, {})):
            return value_by(written, schema, root, self.known), end
        try:
            return (read_value(written) if len(written) <= WORD else written), end
        except BadJson:
            return written, end

    def _bare_end(self, at: int, *, in_list: bool) -> int:
        """The place of the next key, or of the bracket that closes what the value stands in."""
        following = None if in_list else _NEXT_KEY.search(self.text, at)
        stop = following.start() if following else len(self.text)
        signs = "],}" if in_list else "}"
        return next((place for place in range(at, stop) if self.text[place] in signs), stop)

    def _plain(self, start: int, end: int) -> str:
        return self.text[start:end].replace(self.quote, '"')
