"""Texts of a JSON body or of an event stream, each with its position in the bytes.

A text may come in several parts: over the events of a stream, or over the parts of one message. Parts that belong
together have the same path, or the same field name in succession. Any body is accepted: of a body that is not JSON, the
quoted texts are read.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolbench.providers.masking.spellings import Span

_DATA_LINE = re.compile(rb"(?:\A\s*|[\r\n])(?:data|error):[ \t]*([^\r\n]*)")
_LINE = re.compile(rb"[^\r\n]+")
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]|-?[0-9][0-9.eE+-]*+', re.DOTALL)
_CONTAINER_STARTS = (b"{", b"[")
_BOM = b"\xef\xbb\xbf"
_DONE = b"[DONE]"
_SEPARATOR = b"\0\n"  # cannot be part of a secret that HTTP can send
_INDEX_KEYS = ("index", "output_index")  # the latter in events of Responses
_MAX_DEPTH = 128  # deeper levels count as one
_MAX_LABEL_BYTES = 80  # a longer key or id does not distinguish texts


def join_split_texts(data: bytes) -> bytes | None:
    """Return the texts that came in more than one part, joined and decoded, one per line.

    Returns:
        None when `data` cannot be read quickly; use `extract_texts` then.
    """
    parts = _TextCollector()
    try:
        parts.add_documents(_parse_documents(data))
    except (ValueError, RecursionError):
        return None
    return parts.joined().encode("utf-8", "surrogatepass")


def _parse_documents(data: bytes) -> Sequence[Any]:
    """Return the values of a body.

    Raises:
        ValueError: the body is not JSON.
        RecursionError: the JSON is nested too deeply.
    """
    whole = data.removeprefix(_BOM).lstrip()
    if whole[:1] in _CONTAINER_STARTS:
        return (json.loads(whole),)
    lines = [line for line in _DATA_LINE.findall(data.removeprefix(_BOM)) if line and line.rstrip() != _DONE]
    values: list[Any] = json.loads(b"[%s]" % b",".join(lines))
    return values


class _TextNode:
    """Place in the values of a body.

    `texts` were found at this place, `named` under its field name anywhere.
    """

    __slots__ = ("inner", "named", "texts")

    def __init__(self, named: list[str]) -> None:
        self.texts: list[str] = []
        self.named = named
        self.inner: dict[object, _TextNode] = {}


class _TextCollector:
    """Collector of texts by path and by field name."""

    def __init__(self) -> None:
        self._named: dict[str, list[str]] = {}
        self._places: list[_TextNode] = []
        self._root = self._add_node("")

    def _add_node(self, name: str) -> _TextNode:
        place = _TextNode(self._named.setdefault(name, []))
        self._places.append(place)
        return place

    def add_documents(self, documents: Iterable[Any]) -> None:
        """Add the texts of these values."""
        for document in documents:
            if type(document) is dict:
                index = document.get("index", document.get("output_index"))
                self._object(document, self._root if index is None else self._get_labelled_node(self._root, index, ""))
            else:
                self._list((document,), self._root, "")

    def _get_labelled_node(self, place: _TextNode, label: object, name: str) -> _TextNode:
        label = label if isinstance(label, (int, str)) else ""
        return place.inner.get(label) or place.inner.setdefault(label, self._add_node(name))

    def _object(self, value: dict[str, Any], place: _TextNode) -> None:
        inner = place.inner
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                at = inner.get((key,)) or inner.setdefault((key,), self._add_node(key))
                at.texts.append(item)
                at.named.append(item)
            elif item and (kind is dict or kind is list):
                at = inner.get((key,)) or inner.setdefault((key,), self._add_node(key))
                if kind is list:
                    self._list(item, at, key)
                else:
                    index = item.get("index")
                    self._object(item, at if index is None else self._get_labelled_node(at, index, key))

    def _list(self, items: Sequence[Any], place: _TextNode, name: str) -> None:
        for item in items:
            kind = type(item)
            if kind is dict:
                self._object(item, self._get_labelled_node(place, item.get("index", item.get("id", "")), name))
            elif kind is list:
                self._list(item, place, name)
            elif kind is str:
                place.texts.append(item)
                place.named.append(item)

    def joined(self) -> str:
        """Return the texts of more than one part, one per line."""
        groups = {id(group): group for place in self._places for group in (place.texts, place.named)}
        return "\n".join("".join(group) for group in groups.values() if len(group) > 1)


@dataclass(slots=True, eq=False)
class _JsonContainer:
    """Object or list that a scan is in.

    `key` is the last key that was read; in a list it is the key of the list itself.
    """

    parent: "_JsonContainer | None" = None
    within: str = ""  # its key in the parent
    is_list: bool = False
    key: str = ""
    depth: int = 0
    labels: dict[str, str] = field(default_factory=dict)

    def path(self) -> tuple[str, ...]:
        """Return the path of the container's texts. Call it after the whole container was read."""
        steps: list[str] = []
        at: _JsonContainer | None = self
        while at is not None:
            in_list = at.parent is not None and at.parent.is_list
            steps += (at.labels.get("index") or (at.labels.get("id", "") if in_list else ""), at.within)
            at = at.parent
        return tuple(steps)


@dataclass(frozen=True, slots=True)
class BodyTexts:
    """Texts of a body, joined.

    Attributes:
        joined: all texts; those of one group are adjacent, with a separator after each group.
        parts: spans of the parts in the body.
        begins: start of each part in `joined`.
        numbers: spans of numbers in the body.
    """

    joined: bytes
    parts: tuple[Span, ...]
    begins: tuple[int, ...]
    numbers: tuple[Span, ...]

    def map_to_body(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans of the body that the given spans of `joined` cover."""
        for start, end in spans:
            place = max(0, bisect_right(self.begins, start) - 1)
            while place < len(self.parts) and self.begins[place] < end:
                first, last = self.parts[place]
                offset = first - self.begins[place]
                covered = max(first, start + offset), min(last, end + offset)
                if covered[0] < covered[1]:
                    yield covered
                place += 1


def extract_texts(data: bytes) -> BodyTexts:
    """Return every text of `data`, object keys included, with the positions of its parts."""
    scan = _TokenScanner(data)
    whole = data.removeprefix(_BOM).lstrip()[:1] in _CONTAINER_STARTS
    if whole and not _DATA_LINE.search(data):
        scan.read(0, len(data))
    else:
        for line in _LINE.finditer(data):
            scan.line(*line.span())
    return scan.texts()


class _TokenScanner:
    """Scan over the tokens of JSON that may be invalid."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = _JsonContainer()
        self._too_deep = 0
        self._texts: list[tuple[_JsonContainer, str, Span]] = []
        self._keys: list[Span] = []
        self._numbers: list[Span] = []

    def line(self, start: int, end: int) -> None:
        """Read one line of a stream. An event that starts with an object or a list resets the path."""
        name, colon, value = self._data[start:end].removeprefix(_BOM).partition(b":")
        if colon and name.strip() in (b"data", b"error"):
            start = end - len(value)
            if value.lstrip()[:1] in _CONTAINER_STARTS:
                self._at, self._too_deep = _JsonContainer(), 0
        self.read(start, end)

    def read(self, start: int, end: int) -> None:
        """Read the tokens between `start` and `end`."""
        tokens = _TOKEN.finditer(self._data, start, end)
        token = next(tokens, None)
        while token is not None:
            follows = next(tokens, None)
            sign = self._data[token.start() : token.start() + 1]
            if sign == b'"':
                self._text(token.span(), is_key=follows is not None and follows.group() == b":")
            elif sign in b"{[":
                self._enter(is_list=sign == b"[")
            elif sign in b"}]":
                self._leave()
            elif sign not in b",:":
                self._number(token.span())
            token = follows

    def _enter(self, *, is_list: bool) -> None:
        at = self._at
        if at.depth == _MAX_DEPTH:
            self._too_deep += 1
            return
        self._at = _JsonContainer(at, at.key, is_list, at.key if is_list else "", at.depth + 1)

    def _leave(self) -> None:
        if self._too_deep:
            self._too_deep -= 1
        else:
            self._at = self._at.parent or self._at

    def _text(self, span: Span, *, is_key: bool) -> None:
        start, end = span[0] + 1, span[1]
        if end > start and self._data[end - 1 : end] == b'"':
            end -= 1
        text = self._data[start:end].decode("utf-8", "replace") if end - start <= _MAX_LABEL_BYTES else ""
        if is_key:
            self._at.key = text
            self._keys.append((start, end))
            return
        if self._at.key == "id":
            self._at.labels.setdefault("id", text)
        self._texts.append((self._at, self._at.key, (start, end)))

    def _number(self, span: Span) -> None:
        self._numbers.append(span)
        if self._at.key in _INDEX_KEYS:
            self._at.labels["index"] = self._data[slice(*span)].decode()

    def texts(self) -> BodyTexts:
        """Return the texts that were read, grouped by path and again by field name."""
        by_path: defaultdict[tuple[tuple[str, ...], str], list[Span]] = defaultdict(list)
        by_name: defaultdict[str, list[Span]] = defaultdict(list)
        paths: dict[int, tuple[str, ...]] = {}
        for container, name, span in self._texts:
            path = paths.get(id(container)) or paths.setdefault(id(container), container.path())
            by_path[path, name].append(span)
            by_name[name].append(span)
        return self._build_texts((*by_path.values(), *by_name.values(), *([span] for span in self._keys)))

    def _build_texts(self, groups: Iterable[Sequence[Span]]) -> BodyTexts:
        pieces: list[bytes] = []
        parts: list[Span] = []
        begins: list[int] = []
        size = 0
        for group in groups:
            for start, end in group:
                pieces.append(self._data[start:end])
                parts.append((start, end))
                begins.append(size)
                size += end - start
            pieces.append(_SEPARATOR)
            size += len(_SEPARATOR)
        return BodyTexts(b"".join(pieces), tuple(parts), tuple(begins), tuple(self._numbers))
