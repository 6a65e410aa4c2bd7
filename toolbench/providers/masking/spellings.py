"""Search for secrets in bytes, in every spelling that Toolbench masks.

The spellings are: plain; with characters written as JSON escapes (nested ones too), percent escapes or character
entities; as base64 at each of its three alignments in both alphabets; and mixtures of these.
"""

import base64
import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

Span = tuple[int, int]

MIN_SECRET_CHARS = 8  # a shorter key ("ollama") may be an ordinary word: it is masked only in its header

_MAX_DEPTH = 6  # levels of nested escapes that are decoded
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}"
    rb"|\\[\"'\\/bfnrt]|%[0-9a-fA-F]{2}|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);"
)
_ANY_ESCAPE = (b"\\", b"&")
# The only escapes that stand for characters of `_ORDINARY`.
_RARE_ESCAPE = (b"\\u00", b"\\/", b"\\x", b"&#", b"&amp;")
_PERCENT = re.compile(rb"%[0-9a-fA-F]{2}")
_ORDINARY = re.compile(rb"[!#-%(-;=?-\[\]-~]*")
_NAMED_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_LETTER_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PARTIAL_ESCAPE = re.compile(rb"\\+(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?\Z")
_PARTIAL_ESCAPES = re.compile(
    rb"(?:\\++(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%[0-9a-fA-F]?|&(?:#?[0-9a-zA-Z]{0,8})?)++\Z"
)
_MAX_ESCAPE_BYTES = 12  # longest escape of one character
_MAX_PARTIAL_ESCAPE_BYTES = 64  # range before a hit, or at the end, in which a partial escape may begin


class SecretSpellings:
    """Spellings of some secrets. An instance without secrets is false and finds nothing."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self.needles = tuple(dict.fromkeys(needle for secret in secrets for needle in _build_needles(secret)))
        ordinary = all(_ORDINARY.fullmatch(needle) for needle in self.needles)
        self._signs = _RARE_ESCAPE if ordinary else _ANY_ESCAPE
        self._firsts = frozenset(needle[0] for needle in self.needles)
        self._longest = max(map(len, self.needles), default=0)
        self._reach = _MAX_ESCAPE_BYTES * self._longest

    def __bool__(self) -> bool:
        return bool(self.needles)

    def has_match(self, data: bytes) -> bool:
        """Return whether `data` holds a secret, in time proportional to the size of `data`."""
        for _ in range(_MAX_DEPTH):
            for needle in self.needles:
                if needle in data:
                    return True
            if not self._has_escape(data):
                return False
            data = _ESCAPE.sub(_decode_match, data)
        return any(needle in data for needle in self.needles)

    def find_spans(self, data: bytes) -> list[Span]:
        """Return the spans of `data` that spell a secret, sorted and without overlaps.

        A span never begins or ends inside an escape, so that overwriting it leaves valid JSON.
        """
        found = list(self._find_plain(data))
        layers: list[_DecodedLayer] = []
        decoded = data
        while len(layers) < _MAX_DEPTH and self._has_escape(decoded):
            layers.append(_DecodedLayer(decoded))
            decoded = layers[-1].decoded
            for span in self._find_plain(decoded):
                for layer in reversed(layers):
                    span = layer.source(span)
                found.append(span)
        return _merge_spans(_extend_to_escapes(data, span) for span in found)

    def find_partial_start(self, data: bytes) -> int:
        """Return the position from which the end of `data` may be the beginning of a secret.

        The end of `data` is decoded as a whole, layer by layer, so that the time stays proportional to its size.

        Returns:
            The size of `data` when no secret can begin in it.
        """
        if not self.needles:
            return len(data)
        begin = max(0, len(data) - self._reach - _MAX_PARTIAL_ESCAPE_BYTES)
        decoded = data[begin:]
        earliest = len(decoded)
        layers: list[_DecodedLayer] = []
        while True:
            at = self._find_prefix_start(decoded)
            if at < len(decoded):
                for layer in reversed(layers):
                    at = layer.source((at, at + 1))[0]
                earliest = min(earliest, at)
            if len(layers) == _MAX_DEPTH or not self._has_escape(decoded):
                return begin + earliest
            layers.append(_DecodedLayer(decoded))
            decoded = layers[-1].decoded

    def _find_prefix_start(self, data: bytes) -> int:
        """Return where a secret's beginning, or incomplete escapes, start at the end of `data`."""
        tail = data[-_MAX_PARTIAL_ESCAPE_BYTES:]
        size = len(data) - len(tail) + len(_PARTIAL_ESCAPES.sub(b"", tail))
        whole = data[max(0, size - self._longest + 1) : size]
        for at, byte in enumerate(whole):
            if byte in self._firsts and any(needle.startswith(whole[at:]) for needle in self.needles):
                return size - len(whole) + at
        return size

    def _has_escape(self, data: bytes) -> bool:
        """Return whether `data` holds an escape that may be part of a secret's spelling."""
        for sign in self._signs:
            if sign in data:
                return True
        return b"%" in data and _PERCENT.search(data) is not None

    def _find_plain(self, data: bytes) -> Iterator[Span]:
        for needle in self.needles:
            at = data.find(needle)
            while at >= 0:
                yield at, at + len(needle)
                at = data.find(needle, at + 1)


class _DecodedLayer:
    """Bytes with one layer of escapes decoded, and the source position of each decoded byte."""

    def __init__(self, data: bytes) -> None:
        pieces: list[bytes] = []
        self._starts: list[int] = []  # of the meanings of escapes, in the decoded bytes
        self._ends: list[int] = []
        self._sources: list[Span] = []
        at = size = 0
        for match in _ESCAPE.finditer(data):
            meaning = _decode_escape(match.group())
            pieces += (data[at : match.start()], meaning)
            size += match.start() - at
            self._starts.append(size)
            size += len(meaning)
            self._ends.append(size)
            self._sources.append(match.span())
            at = match.end()
        self.decoded = b"".join((*pieces, data[at:]))

    def source(self, span: Span) -> Span:
        """Return the span of the encoded bytes that a span of the decoded bytes came from."""
        return self._source(span[0])[0], self._source(span[1] - 1)[1]

    def _source(self, at: int) -> Span:
        place = bisect_right(self._starts, at) - 1
        if place < 0:
            return at, at + 1
        if at < self._ends[place]:
            return self._sources[place]
        moved = self._sources[place][1] + at - self._ends[place]
        return moved, moved + 1


def overwrite(data: bytes, spans: Iterable[Span], sign: bytes = b"*") -> bytes:
    """Return a copy of `data` of the same length with the spans filled with `sign`."""
    copy = bytearray(data)
    for start, end in spans:
        copy[start:end] = sign * (end - start)
    return bytes(copy)


def _build_needles(secret: str) -> Iterator[bytes]:
    """Yield the byte strings to search for in every layer.

    They are the secret, the secret with its escapes decoded, and its base64. Of the base64, only the characters that
    depend on the secret alone are searched for.
    """
    plain = secret.encode("utf-8", "surrogatepass")
    yield plain
    decoded = plain
    for _ in range(_MAX_DEPTH):
        decoded = _ESCAPE.sub(_decode_match, decoded)
    yield decoded
    for before in range(3):
        first, end = -(-before * 8 // 6), (before + len(plain)) * 8 // 6
        standard = base64.b64encode(b"\0" * before + plain)[first:end]
        yield standard
        yield standard.translate(bytes.maketrans(b"+/", b"-_"))


def _decode_match(match: re.Match[bytes]) -> bytes:
    return _decode_escape(match.group())


@functools.lru_cache(maxsize=4096)
def _decode_escape(escape: bytes) -> bytes:
    """Return the bytes that an escape stands for; an escape without a character is returned unchanged."""
    if escape[:1] == b"%":
        return bytes((int(escape[1:], 16),))
    if escape[:1] == b"&":
        return _decode_entity(escape)
    if escape[1:2] == b"u":
        units = bytes.fromhex(escape.replace(b"\\u", b"").decode())
        return units.decode("utf-16-be", "surrogatepass").encode("utf-8", "surrogatepass")
    if escape[1:2] == b"x":
        return chr(int(escape[2:], 16)).encode()
    return _LETTER_ESCAPES.get(escape[1:], escape[1:])


def _decode_entity(entity: bytes) -> bytes:
    name = entity[1:-1]
    if name[:1] != b"#":
        return _NAMED_ENTITIES[name]
    code = int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:])
    return chr(code).encode("utf-8", "surrogatepass") if code < 0x110000 else entity


def _extend_to_escapes(data: bytes, span: Span) -> Span:
    """Return the span extended over the escapes that it would split."""
    start, end = span
    head = max(0, start - _MAX_PARTIAL_ESCAPE_BYTES)
    if cut := _PARTIAL_ESCAPE.search(data[head:start]):
        start = head + cut.start()
    last = data[start:end]
    backslashes = len(last) - len(last.rstrip(b"\\"))
    if backslashes % 2 and end < len(data):
        end += 5 if data[end : end + 1] == b"u" else 1
    return start, min(end, len(data))


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
