"""Extraction of the texts of a JSON body or of an event stream, each with its position in the bytes.

A text may be split into parts, over the events of a stream or over the content parts of a message. Parts are joined
twice: those with the same path, and those with the same field name. The path of a text consists of the keys that lead
to it, and of the fields `index`, or `id` in list items, of the objects on the way; positions in lists do not count. Any
body is accepted; in a body that is not JSON, the quoted texts are extracted.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
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
_INDEX_KEYS = ("index", "output_index")  # the latter in events of the Responses API
_MAX_DEPTH = 128  # deeper levels count as one
_MAX_LABEL_BYTES = 480  # a longer key or id is treated as ""


def join_split_texts(data: bytes) -> bytes | None:
    """Return the texts that are split into parts, each joined, separated by line breaks.

    This function is faster than `extract_texts`, because it parses the body as JSON and finds no positions.

    Returns:
        The texts as UTF-8, with JSON escapes decoded; b"" for plain text, in which no text is split. None
        if `data` cannot be parsed or has repeated keys; use `extract_texts` then.
    """
    try:
        documents = _parse_documents(data)
        joined = _join_named_texts(documents)
        if joined is None:
            collector = _TextCollector()
            collector.add_documents(documents)
            joined = collector.join_parts()
    except (ValueError, RecursionError):
        return None
    return joined.encode("utf-8", "surrogatepass")


def _join_named_texts(documents: Sequence[Any]) -> str | None:
    """Return the texts that have more than one part, without building the paths of the texts.

    Returns:
        The texts of `_TextCollector.join_parts`, each once. None if a field name has more than two texts: only then can
        a path have several, but not all, of the name's texts, so that they have to be joined by path as well.
    """
    texts_by_name: dict[str, list[str]] = {}
    for document in documents:
        _add_named_texts(document, "", texts_by_name)
    if any(len(texts) > 2 for texts in texts_by_name.values()):
        return None
    return "\n".join("".join(texts) for texts in texts_by_name.values() if len(texts) == 2)


def _add_named_texts(value: Any, name: str, texts_by_name: dict[str, list[str]]) -> None:
    """Add the texts of a JSON value; those of a list have the name of the list."""
    kind = type(value)
    if kind is str:
        texts_by_name.setdefault(name, []).append(value)
    elif kind is dict:
        for key, item in value.items():
            if type(item) is str:
                texts_by_name.setdefault(key, []).append(item)
            elif item:
                _add_named_texts(item, key, texts_by_name)
    elif kind is list:
        for item in value:
            _add_named_texts(item, name, texts_by_name)


def _parse_documents(data: bytes) -> Sequence[Any]:
    """Return the JSON value of a body, or those of the events of a stream.

    Returns:
        One value for a JSON body, one per event for a stream, none for plain text without events.

    Raises:
        ValueError: the body or an event is not valid JSON, or has an object in which a key occurs twice.
        RecursionError: the JSON is nested too deeply.
    """
    whole = data.removeprefix(_BOM).lstrip()
    if whole[:1] in _CONTAINER_STARTS:
        return (json.loads(whole, object_pairs_hook=_build_object),)
    lines = [line for line in _DATA_LINE.findall(data.removeprefix(_BOM)) if line and line.rstrip() != _DONE]
    values: list[Any] = json.loads(b"[%s]" % b",".join(lines), object_pairs_hook=_build_object)
    return values


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the object of these pairs.

    Raises:
        ValueError: a key occurs twice, so that an object would lose a text.
    """
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a key occurs twice")
    return value


class _TextNode:
    """Node of the tree of paths in a body.

    Attributes:
        texts: texts with this path.
        name_texts: texts with the same field name at any path; the nodes of that name share the list.
        children: nodes by label: the 1-tuple (key,) for a field, so that it cannot equal an item's index or id.
    """

    __slots__ = ("children", "name_texts", "texts")

    def __init__(self, name_texts: list[str]) -> None:
        self.texts: list[str] = []
        self.name_texts = name_texts
        self.children: dict[object, _TextNode] = {}


class _TextCollector:
    """Collector of texts by path and by field name."""

    def __init__(self) -> None:
        self._texts_by_name: dict[str, list[str]] = {}
        self._nodes: list[_TextNode] = []
        self._root = self._add_node("")

    def _add_node(self, name: str) -> _TextNode:
        node = _TextNode(self._texts_by_name.setdefault(name, []))
        self._nodes.append(node)
        return node

    def add_documents(self, documents: Iterable[Any]) -> None:
        """Add the texts of these JSON values."""
        for document in documents:
            if type(document) is dict:
                index = document.get("index", document.get("output_index"))
                node = self._root if index is None else self._ensure_item_node(self._root, index, "")
                self._add_object(document, node)
            else:
                self._add_list((document,), self._root, "")

    def _ensure_item_node(self, node: _TextNode, label: object, name: str) -> _TextNode:
        """Return the child of a node for the item with this index or id; add it if it is missing.

        Args:
            node: the node of the list, or of the object that has an index.
            label: index or id of the item; any value but a number or a text counts as "".
            name: field name of the list or object; "" at the root.
        """
        label = label if isinstance(label, (int, str)) else ""
        return node.children.get(label) or node.children.setdefault(label, self._add_node(name))

    def _add_object(self, value: dict[str, Any], node: _TextNode) -> None:
        children = node.children
        for key, item in value.items():
            kind = type(item)
            if kind is str:
                child = children.get((key,)) or children.setdefault((key,), self._add_node(key))
                child.texts.append(item)
                child.name_texts.append(item)
            elif item and (kind is dict or kind is list):
                child = children.get((key,)) or children.setdefault((key,), self._add_node(key))
                if kind is list:
                    self._add_list(item, child, key)
                else:
                    index = item.get("index")
                    self._add_object(item, child if index is None else self._ensure_item_node(child, index, key))

    def _add_list(self, items: Sequence[Any], node: _TextNode, name: str) -> None:
        for item in items:
            kind = type(item)
            if kind is dict:
                self._add_object(item, self._ensure_item_node(node, item.get("index", item.get("id", "")), name))
            elif kind is list:
                self._add_list(item, node, name)
            elif kind is str:
                node.texts.append(item)
                node.name_texts.append(item)

    def join_parts(self) -> str:
        """Return the texts that have more than one part, joined, one per line."""
        groups = {id(group): group for node in self._nodes for group in (node.texts, node.name_texts)}
        return "\n".join("".join(group) for group in groups.values() if len(group) > 1)


@dataclass(slots=True, eq=False)
class _JsonContainer:
    """Object or list at the position of a scan.

    Attributes:
        parent: the container around it, None for the outermost one, which stands for the whole body.
        parent_key: its key in the parent.
        is_list: whether it is a list.
        key: the last key that was read; in a list, the key of the list itself.
        depth: number of containers around it.
        labels: its fields `index` (or `output_index`, under the name `index`) and `id`, as text.
    """

    parent: "_JsonContainer | None" = None
    parent_key: str = ""
    is_list: bool = False
    key: str = ""
    depth: int = 0
    labels: dict[str, str] = field(default_factory=dict)

    def build_path(self) -> tuple[str, ...]:
        """Build the path of the container's texts. Call it after the whole container was read.

        Returns:
            Label and key of each container, the innermost one first.
        """
        steps: list[str] = []
        container: _JsonContainer | None = self
        while container is not None:
            is_item = container.parent is not None and container.parent.is_list
            label = container.labels.get("index") or (container.labels.get("id", "") if is_item else "")
            steps += (label, container.parent_key)
            container = container.parent
        return tuple(steps)


@dataclass(frozen=True, slots=True)
class BodyTexts:
    """Texts of a body, joined in groups of parts that belong together.

    Attributes:
        joined: the parts as in the body, with JSON escapes, group by group, with a separator after each group.
        part_spans: spans of the parts in the body.
        part_starts: start of each part in `joined`.
        numbers: spans of numbers in the body.
    """

    joined: bytes
    part_spans: tuple[Span, ...]
    part_starts: tuple[int, ...]
    numbers: tuple[Span, ...]

    def map_to_body(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans of the body that the given spans of `joined` cover."""
        for start, end in spans:
            part = max(0, bisect_right(self.part_starts, start) - 1)
            while part < len(self.part_spans) and self.part_starts[part] < end:
                part_start, part_end = self.part_spans[part]
                offset = part_start - self.part_starts[part]
                covered = max(part_start, start + offset), min(part_end, end + offset)
                if covered[0] < covered[1]:
                    yield covered
                part += 1


def extract_texts(data: bytes) -> BodyTexts:
    """Return every text of `data`, object keys included, with the positions of its parts."""
    scanner = _TokenScanner(data)
    is_json = data.removeprefix(_BOM).lstrip()[:1] in _CONTAINER_STARTS
    if is_json and not _DATA_LINE.search(data):
        scanner.scan(0, len(data))
    else:
        for line in _LINE.finditer(data):
            scanner.scan_line(*line.span())
    return scanner.build_texts()


class _TokenScanner:
    """Scanner of the tokens of JSON, which may be invalid, or of the lines of an event stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._container = _JsonContainer()
        self._excess_depth = 0  # open containers deeper than `_MAX_DEPTH`
        self._texts: list[tuple[_JsonContainer, str, Span]] = []  # (container, field name, span)
        self._keys: list[Span] = []
        self._numbers: list[Span] = []

    def scan_line(self, start: int, end: int) -> None:
        """Scan one line of a stream. An event that starts with an object or a list resets the path."""
        name, colon, value = self._data[start:end].removeprefix(_BOM).partition(b":")
        if colon and name.strip() in (b"data", b"error"):
            start = end - len(value)
            if value.lstrip()[:1] in _CONTAINER_STARTS:
                self._container, self._excess_depth = _JsonContainer(), 0
        self.scan(start, end)

    def scan(self, start: int, end: int) -> None:
        """Scan the tokens between two positions of the body."""
        tokens = _TOKEN.finditer(self._data, start, end)
        token = next(tokens, None)
        while token is not None:
            next_token = next(tokens, None)
            first_byte = self._data[token.start() : token.start() + 1]
            if first_byte == b'"':
                self._add_text(token.span(), is_key=next_token is not None and next_token.group() == b":")
            elif first_byte in b"{[":
                self._enter_container(is_list=first_byte == b"[")
            elif first_byte in b"}]":
                self._leave_container()
            elif first_byte not in b",:":
                self._add_number(token.span())
            token = next_token

    def _enter_container(self, *, is_list: bool) -> None:
        parent = self._container
        if parent.depth == _MAX_DEPTH:
            self._excess_depth += 1
            return
        self._container = _JsonContainer(parent, parent.key, is_list, parent.key if is_list else "", parent.depth + 1)

    def _leave_container(self) -> None:
        if self._excess_depth:
            self._excess_depth -= 1
        else:
            self._container = self._container.parent or self._container

    def _add_text(self, span: Span, *, is_key: bool) -> None:
        start, end = span[0] + 1, span[1]
        if end > start and self._data[end - 1 : end] == b'"':
            end -= 1
        if is_key:
            self._container.key = self._read_label(start, end)
            self._keys.append((start, end))
            return
        if self._container.key == "id":
            self._container.labels.setdefault("id", self._read_label(start, end))
        self._texts.append((self._container, self._container.key, (start, end)))

    def _read_label(self, start: int, end: int) -> str:
        """Return a key or id, with its JSON escapes decoded if they are valid; "" if it is too long."""
        if end - start > _MAX_LABEL_BYTES:
            return ""
        label = self._data[start:end].decode("utf-8", "replace")
        if "\\" in label:
            with suppress(ValueError):
                label = str(json.loads(f'"{label}"', strict=False))
        return label

    def _add_number(self, span: Span) -> None:
        self._numbers.append(span)
        if self._container.key in _INDEX_KEYS:
            self._container.labels["index"] = self._data[slice(*span)].decode()

    def build_texts(self) -> BodyTexts:
        """Return the texts that were scanned, grouped by path and again by field name."""
        by_path: defaultdict[tuple[tuple[str, ...], str], list[Span]] = defaultdict(list)
        by_name: defaultdict[str, list[Span]] = defaultdict(list)
        paths: dict[int, tuple[str, ...]] = {}
        for container, name, span in self._texts:
            path = paths.get(id(container)) or paths.setdefault(id(container), container.build_path())
            by_path[path, name].append(span)
            by_name[name].append(span)
        return self._join_groups((*by_path.values(), *by_name.values(), *([span] for span in self._keys)))

    def _join_groups(self, groups: Iterable[Sequence[Span]]) -> BodyTexts:
        texts: list[bytes] = []
        part_spans: list[Span] = []
        part_starts: list[int] = []
        joined_bytes = 0
        for group in groups:
            for start, end in group:
                texts.append(self._data[start:end])
                part_spans.append((start, end))
                part_starts.append(joined_bytes)
                joined_bytes += end - start
            texts.append(_SEPARATOR)
            joined_bytes += len(_SEPARATOR)
        return BodyTexts(b"".join(texts), tuple(part_spans), tuple(part_starts), tuple(self._numbers))
