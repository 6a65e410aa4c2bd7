"""Search for secrets in bytes, in every spelling that Toolbench masks.

A secret may be spelled plainly, with characters written as JSON escapes (nested ones too), percent escapes or character
entities, in base64 at each of its three alignments and in both alphabets, or in a mixture of these.
"""

import base64
import functools
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator

Span = tuple[int, int]

MIN_SECRET_CHARS = 8  # a shorter key ("ollama") may be an ordinary word, so it is masked only in its header

_MAX_DEPTH = 6  # levels of nested escapes that are decoded
# "A" can be escaped as \u0041, \x41, %41, &#65; or &#x41;. A pair such as \ud83d\ude00 is one escape.
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}"
    rb"|\\[\"'\\/bfnrt]|%[0-9a-fA-F]{2}|&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);"
)
_ESCAPE_STARTS = (b"\\", b"&")  # of all escapes except percent escapes
# Starts of the escapes that can stand for a character of `_ORDINARY_TEXT`, or for the "&" of a nested escape.
_RARE_ESCAPE_STARTS = (b"\\u00", b"\\/", b"\\x", b"&#", b"&amp;")
_PERCENT_ESCAPE = re.compile(rb"%[0-9a-fA-F]{2}")
# Printable ASCII that JSON and HTML can hold without an escape.
_ORDINARY_TEXT = re.compile(rb"[!#-%(-;=?-\[\]-~]*")
_NAMED_ENTITIES = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}
_LETTER_ESCAPES = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_PARTIAL_JSON_ESCAPE = re.compile(rb"\\+(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?\Z")
_PARTIAL_ESCAPES = re.compile(
    rb"(?:\\++(?:u[0-9a-fA-F]{0,3}|x[0-9a-fA-F]?)?|%[0-9a-fA-F]?|&(?:#?[0-9a-zA-Z]{0,8})?)++\Z"
)
_MAX_ESCAPE_BYTES = 12  # longest escape of one character
_MAX_PARTIAL_ESCAPE_BYTES = 64  # bytes before a match, or at the end of the data, that are searched for such an escape


class SecretSpellings:
    """Search for a set of secrets in all their spellings.

    An instance without secrets is false and finds nothing.
    """

    def __init__(self, secrets: Iterable[str]) -> None:
        self._needles = tuple(dict.fromkeys(needle for secret in secrets for needle in _build_needles(secret)))
        has_ordinary_needles = all(_ORDINARY_TEXT.fullmatch(needle) for needle in self._needles)
        self._escape_starts = _RARE_ESCAPE_STARTS if has_ordinary_needles else _ESCAPE_STARTS
        self._first_bytes = frozenset(needle[0] for needle in self._needles)
        self._max_needle_bytes = max(map(len, self._needles), default=0)
        self._max_spelled_bytes = _MAX_ESCAPE_BYTES * self._max_needle_bytes

    def __bool__(self) -> bool:
        return bool(self._needles)

    def has_match(self, data: bytes) -> bool:
        """Return whether `data` holds a secret. The time is proportional to the size of `data`."""
        for _ in range(_MAX_DEPTH):
            for needle in self._needles:
                if needle in data:
                    return True
            if not self._has_escape(data):
                return False
            data = _ESCAPE.sub(_decode_match, data)
        return any(needle in data for needle in self._needles)

    def find_spans(self, data: bytes) -> list[Span]:
        """Return the spans of `data` that spell a secret, sorted and without overlaps.

        A span never begins or ends inside an escape, so that JSON stays valid when the span is overwritten.
        """
        spans = list(self._iter_needle_spans(data))
        layers: list[_DecodedLayer] = []
        decoded = data
        while len(layers) < _MAX_DEPTH and self._has_escape(decoded):
            layers.append(_DecodedLayer(decoded))
            decoded = layers[-1].decoded
            for span in self._iter_needle_spans(decoded):
                for layer in reversed(layers):
                    span = layer.map_to_source(span)
                spans.append(span)
        return _merge_spans(_extend_to_escapes(data, span) for span in spans)

    def find_partial_start(self, data: bytes) -> int:
        """Return the position from which the end of `data` may be the beginning of a secret.

        The end of `data` is decoded as a whole, layer by layer, so that the time stays proportional to its size.

        Returns:
            The size of `data` if its end cannot be the beginning of a secret.
        """
        if not self._needles:
            return len(data)
        begin = max(0, len(data) - self._max_spelled_bytes - _MAX_PARTIAL_ESCAPE_BYTES)
        decoded = data[begin:]
        earliest = len(decoded)
        layers: list[_DecodedLayer] = []
        while True:
            start = self._find_prefix_start(decoded)
            if start < len(decoded):
                for layer in reversed(layers):
                    start = layer.map_to_source((start, start + 1))[0]
                earliest = min(earliest, start)
            if len(layers) == _MAX_DEPTH or not self._has_escape(decoded):
                return begin + earliest
            layers.append(_DecodedLayer(decoded))
            decoded = layers[-1].decoded

    def _find_prefix_start(self, data: bytes) -> int:
        """Return the first position from which the rest of `data` is the beginning of a needle.

        Incomplete escapes at the end of `data` are not part of this rest.

        Returns:
            The start of the incomplete escapes if there is no such position; the size of `data` without such escapes.
        """
        tail = data[-_MAX_PARTIAL_ESCAPE_BYTES:]
        size = len(data) - len(tail) + len(_PARTIAL_ESCAPES.sub(b"", tail))
        ending = data[max(0, size - self._max_needle_bytes + 1) : size]
        for offset, byte in enumerate(ending):
            if byte in self._first_bytes and any(needle.startswith(ending[offset:]) for needle in self._needles):
                return size - len(ending) + offset
        return size

    def _has_escape(self, data: bytes) -> bool:
        """Return whether `data` holds an escape that may be part of a secret's spelling."""
        for start in self._escape_starts:
            if start in data:
                return True
        return b"%" in data and _PERCENT_ESCAPE.search(data) is not None

    def _iter_needle_spans(self, data: bytes) -> Iterator[Span]:
        for needle in self._needles:
            start = data.find(needle)
            while start >= 0:
                yield start, start + len(needle)
                start = data.find(needle, start + 1)


class _DecodedLayer:
    """Bytes with one layer of escapes decoded, and the source position of each decoded byte."""

    def __init__(self, data: bytes) -> None:
        parts: list[bytes] = []
        # Of each escape: where its characters start and end in the decoded bytes, and its span in `data`.
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._escape_spans: list[Span] = []
        position = decoded_bytes = 0
        for match in _ESCAPE.finditer(data):
            characters = _decode_escape(match.group())
            parts += (data[position : match.start()], characters)
            decoded_bytes += match.start() - position
            self._starts.append(decoded_bytes)
            decoded_bytes += len(characters)
            self._ends.append(decoded_bytes)
            self._escape_spans.append(match.span())
            position = match.end()
        self.decoded = b"".join((*parts, data[position:]))

    def map_to_source(self, span: Span) -> Span:
        """Return the span of the encoded bytes that a span of the decoded bytes came from."""
        return self._find_source(span[0])[0], self._find_source(span[1] - 1)[1]

    def _find_source(self, position: int) -> Span:
        """Return the span of the encoded bytes that the decoded byte at `position` came from."""
        last_escape = bisect_right(self._starts, position) - 1
        if last_escape < 0:
            return position, position + 1
        if position < self._ends[last_escape]:
            return self._escape_spans[last_escape]
        source = self._escape_spans[last_escape][1] + position - self._ends[last_escape]
        return source, source + 1


def overwrite(data: bytes, spans: Iterable[Span], filler: bytes = b"*") -> bytes:
    """Return a copy of `data` of the same length with the spans filled with `filler`, a single byte."""
    copy = bytearray(data)
    for start, end in spans:
        copy[start:end] = filler * (end - start)
    return bytes(copy)


def _build_needles(secret: str) -> Iterator[bytes]:
    """Yield the byte strings to search for in every layer: the secret, its decoded form and its base64.

    A secret may itself contain escapes; they are decoded in its second form, which is left out if it is not valid
    UTF-8. Of the base64, only the characters that depend on the secret alone are used.
    """
    plain = secret.encode("utf-8", "surrogatepass")
    yield plain
    decoded = plain
    for _ in range(_MAX_DEPTH):
        decoded = _ESCAPE.sub(_decode_match, decoded)
    if _is_utf8(decoded):
        yield decoded
    for preceding_bytes in range(3):
        first, end = -(-preceding_bytes * 8 // 6), (preceding_bytes + len(plain)) * 8 // 6
        encoded = base64.b64encode(b"\0" * preceding_bytes + plain)[first:end]
        yield encoded
        yield encoded.translate(bytes.maketrans(b"+/", b"-_"))  # the alphabet for URLs


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _decode_match(match: re.Match[bytes]) -> bytes:
    return _decode_escape(match.group())


@functools.lru_cache(maxsize=4096)
def _decode_escape(escape: bytes) -> bytes:
    """Return the bytes that an escape stands for, or the escape itself if it stands for no character."""
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
    """Return the span extended over the JSON escapes that it would split."""
    start, end = span
    search_start = max(0, start - _MAX_PARTIAL_ESCAPE_BYTES)
    if split_escape := _PARTIAL_JSON_ESCAPE.search(data[search_start:start]):
        start = search_start + split_escape.start()
    covered = data[start:end]
    backslash_count = len(covered) - len(covered.rstrip(b"\\"))
    if backslash_count % 2 and end < len(data):
        end += 5 if data[end : end + 1] == b"u" else 1
    return start, min(end, len(data))


def _merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the spans sorted, with those that overlap or touch joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged
