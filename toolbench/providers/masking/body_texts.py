"""Extraction of the texts of a JSON body or of an event stream, each with its position in the bytes.

A text may be split into parts, over the events of a stream or over the content parts of a message. Parts are joined
twice: those with the same path, and those with the same field name. The path of a text consists of the keys that lead
to it and of the labels of the objects on the way, as `read_label` returns them; positions in lists do not count. Any
body is accepted; in a body that is not JSON, the quoted texts are extracted.
"""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from toolbench.providers.masking.body_format import (
    BOM,
    CONTAINER_STARTS,
    DATA_LINE,
    ITEM_KEYS,
    MAX_DEPTH,
    read_label,
)
from toolbench.providers.masking.spellings import Span

_LINE = re.compile(rb"[^\r\n]+")
# A quoted text, whose end may be missing; a bracket, colon or comma; or a number.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[{}\[\],:]|-?[0-9][0-9.eE+-]*+', re.DOTALL)
_SEPARATOR = b"\0\n"  # cannot be part of a secret that HTTP can send


@dataclass(slots=True, eq=False)
class _JsonContainer:
    """Object or list that a scan has entered.

    Attributes:
        parent: the container around it; None for the outermost one, which stands for the body or one event.
        parent_key: its key in the parent; in a list, the key of that list.
        is_list: whether it is a list.
        key: the last key that was read; in a list, the key of the list itself.
        depth: number of containers around it.
        label_fields: its fields named in `ITEM_KEYS` that are a number or a text; none in a list.
        path_id: id of the path of its texts; None until `_PathIds` has set it.
    """

    parent: "_JsonContainer | None" = None
    parent_key: str = ""
    is_list: bool = False
    key: str = ""
    depth: int = 0
    label_fields: dict[str, object] = field(default_factory=dict)
    path_id: int | None = None


@dataclass(frozen=True, slots=True)
class BodyTexts:
    """Texts of a body, joined in groups of parts that belong together.

    Attributes:
        joined: the parts as in the body, with JSON escapes, group by group, with a separator after each group.
        part_spans: spans of the parts in the body, in the order of `joined`.
        part_starts: start of each part in `joined`, in ascending order.
        number_spans: spans of the JSON numbers in the body.
    """

    joined: bytes
    part_spans: tuple[Span, ...]
    part_starts: tuple[int, ...]
    number_spans: tuple[Span, ...]

    def map_to_body(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Yield the spans of the body that the given spans of `joined` cover."""
        for start, end in spans:
            part_index = max(0, bisect_right(self.part_starts, start) - 1)
            while part_index < len(self.part_spans) and self.part_starts[part_index] < end:
                part_start, part_end = self.part_spans[part_index]
                offset = part_start - self.part_starts[part_index]
                covered = max(part_start, start + offset), min(part_end, end + offset)
                if covered[0] < covered[1]:
                    yield covered
                part_index += 1


def extract_texts(data: bytes) -> BodyTexts:
    """Return every text of `data`, object keys included, with the positions of its parts."""
    scanner = _TokenScanner(data)
    is_json = data.removeprefix(BOM).lstrip()[:1] in CONTAINER_STARTS
    if is_json and not DATA_LINE.search(data):
        scanner.scan(0, len(data))
    else:
        for line in _LINE.finditer(data):
            scanner.scan_line(*line.span())
    return scanner.build_texts()


class _PathIds:
    """Ids of paths. Equal paths have the same id, so that no path is ever compared or built as a whole."""

    def __init__(self) -> None:
        self._ids: dict[tuple[int, str, str], int] = {}  # by id of the outer path, label and key

    def find_id(self, container: _JsonContainer) -> int:
        """Return the id of the path of the container's texts. Call it after the whole body was read.

        A path consists of label and key of each object; lists add nothing to it.
        """
        without_id: list[_JsonContainer] = []
        while container.path_id is None and container.parent is not None:
            without_id.append(container)
            container = container.parent
        path_id = container.path_id or 0
        for inner in reversed(without_id):
            if not inner.is_list:
                label = read_label(inner.label_fields, is_item=container.is_list)
                path_id = self._ids.setdefault((path_id, label, inner.parent_key), len(self._ids) + 1)
            inner.path_id = path_id
            container = inner
        return path_id


class _TokenScanner:
    """Scanner of the tokens of JSON, which may be invalid, or of the lines of an event stream."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._container = _JsonContainer()
        self._excess_depth = 0  # open containers deeper than `MAX_DEPTH`
        self._texts: list[tuple[_JsonContainer, str, Span]] = []  # (container, field name, span)
        self._key_spans: list[Span] = []
        self._number_spans: list[Span] = []
        self._interned_texts: dict[str, str] = {}

    def scan_line(self, start: int, end: int) -> None:
        """Scan one line of a stream. An event that starts with an object or a list resets the path."""
        name, colon, value = self._data[start:end].removeprefix(BOM).partition(b":")
        if colon and name.strip() in (b"data", b"error"):
            start = end - len(value)
            if value.lstrip()[:1] in CONTAINER_STARTS:
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
        if parent.depth == MAX_DEPTH:
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
        container = self._container
        if is_key:
            container.key = self._decode_text(start, end)
            self._key_spans.append((start, end))
            return
        if container.key in ITEM_KEYS and not container.is_list:
            container.label_fields[container.key] = self._decode_text(start, end)
        self._texts.append((container, container.key, (start, end)))

    def _decode_text(self, start: int, end: int) -> str:
        """Return a key or text, with its JSON escapes decoded if they are valid.

        Equal texts are the same object, so that parts of paths are compared in a time that does not grow with them.
        """
        text = self._data[start:end].decode("utf-8", "replace")
        if "\\" in text:
            with suppress(ValueError):
                text = str(json.loads(f'"{text}"', strict=False))
        return self._interned_texts.setdefault(text, text)

    def _add_number(self, span: Span) -> None:
        self._number_spans.append(span)
        container = self._container
        if container.key in ITEM_KEYS and not container.is_list:
            number = self._data[slice(*span)].decode()
            try:
                container.label_fields[container.key] = json.loads(number)
            except ValueError:
                container.label_fields[container.key] = number

    def build_texts(self) -> BodyTexts:
        """Return the texts that were scanned, grouped by path and again by field name."""
        by_path: defaultdict[tuple[int, str], list[Span]] = defaultdict(list)
        by_name: defaultdict[str, list[Span]] = defaultdict(list)
        path_ids = _PathIds()
        for container, name, span in self._texts:
            by_path[path_ids.find_id(container), name].append(span)
            by_name[name].append(span)
        return self._join_groups((*by_path.values(), *by_name.values(), *([span] for span in self._key_spans)))

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
        return BodyTexts(b"".join(texts), tuple(part_spans), tuple(part_starts), tuple(self._number_spans))
