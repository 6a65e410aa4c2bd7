"""Search for keys in any spelling. It shares no code with the masking of the product.

JSON and streams of events are split into their texts, and texts at one path are joined. Texts are unescaped and decoded
from percent encoding, entities and base64, up to five times in a row. Archives are opened.
"""

import base64
import binascii
import html
import io
import json
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

_MAX_DEPTH = 5
_MAX_BASE64_DEPTH = 2
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{10,}")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})|\\([\"\\/'])")


class CanarySearch:
    """Search for canaries.

    Attributes:
        texts: number of texts that were searched.
    """

    def __init__(self, canaries: Iterable[str]) -> None:
        self._canaries = tuple(canary.lower() for canary in canaries)
        self.texts = 0

    def has_canary(self, data: bytes) -> bool:
        """Return whether a canary is in `data` or in anything that it decodes to."""
        if data[:2] == b"PK" and zipfile.is_zipfile(io.BytesIO(data)):
            return self._in_archive(data)
        text = data.decode("utf-8", "replace")
        return self.has_canary_in_text(text) or any(
            self.has_canary_in_text(part) for part in _iter_document_texts(text)
        )

    def has_canary_in_text(self, text: str) -> bool:
        """Return whether a canary is in a text or in what it decodes to."""
        self.texts += 1
        seen, views = {text}, [text]
        for depth in range(_MAX_DEPTH):
            if any(canary in view.lower() for view in views for canary in self._canaries):
                return True
            decoded = (result for view in views for result in _iter_decoded(view, in_base64=depth < _MAX_BASE64_DEPTH))
            views = [view for view in dict.fromkeys(decoded) if view not in seen]
            seen.update(views)
        return any(canary in view.lower() for view in views for canary in self._canaries)

    def _in_archive(self, data: bytes) -> bool:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            return any(self.has_canary_in_text(name) or self.has_canary(archive.read(name)) for name in names)


def _iter_decoded(text: str, *, in_base64: bool) -> Iterator[str]:
    if "\\" in text:
        yield _ESCAPED.sub(_decode_escape, text)
    if "%" in text:
        yield unquote(text)
    if "&" in text:
        yield html.unescape(text)
    if in_base64 and (tokens := set(_BASE64.findall(text))):
        yield from ("\n".join(_decode_base64(token, begin) for token in tokens) for begin in range(4))


def _decode_escape(match: re.Match[str]) -> str:
    code = match.group(1) or match.group(2)
    return chr(int(code, 16)) if code else match.group(3)


def _decode_base64(token: str, begin: int) -> str:
    part = token.replace("-", "+").replace("_", "/")[begin:]
    try:
        return base64.b64decode(part[: len(part) // 4 * 4], validate=True).decode("latin-1")
    except binascii.Error:
        return ""


def _iter_document_texts(text: str) -> Iterator[str]:
    """Yield the texts of a JSON document or stream of events, and the joined texts of each path and name."""
    by_path: defaultdict[tuple[object, ...], list[str]] = defaultdict(list)
    by_name: defaultdict[object, list[str]] = defaultdict(list)
    for value in _iter_json_values(text):
        for path, leaf in _iter_leaves(value, ()):
            by_path[path].append(leaf)
            by_name[path[-1] if path else ""].append(leaf)
    for group in (*by_path.values(), *by_name.values()):
        yield from dict.fromkeys(("".join(group), *group))


def _iter_json_values(text: str) -> Iterator[Any]:
    for part in (text, *(line.partition(":")[2] for line in text.splitlines()), *text.splitlines()):
        if part.strip()[:1] in ("{", "[", '"'):
            try:
                yield json.loads(part, strict=False)
            except (ValueError, RecursionError):
                continue


def _iter_leaves(value: Any, path: tuple[object, ...]) -> Iterator[tuple[tuple[object, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        index = value.get("index", value.get("output_index"))
        label = (index,) if isinstance(index, int) else ()
        for key, item in value.items():
            yield (*path, "key"), str(key)
            yield from _iter_leaves(item, (*path, *label, key))
    elif isinstance(value, list):
        for item in value:
            yield from _iter_leaves(item, path)
