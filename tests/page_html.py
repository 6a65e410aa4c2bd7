"""HTML of pages without the line breaks and the indentation of the templates, for comparison in tests."""

import re
from collections.abc import Mapping
from typing import Protocol

_BLOCKS = (
    'a class="btn|aside|body|br|button|caption|col|dd|details|div|dl|dt|fieldset|figure|footer|form|h[1-6]|head|header|'
    "hr|input|label|legend|li|link|main|meta|nav|noscript|ol|optgroup|option|p|section|select|summary|table|tbody|td|"
    "tfoot|th|thead|title|tr|ul"
)
_KEPT = re.compile(r"(<(?:pre|textarea)\b.*?</(?:pre|textarea)>)", re.DOTALL)
_TAG = re.compile(r"<[^<>]+>")
_AROUND_BLOCKS = re.compile(rf"\s*(</?(?:{_BLOCKS})\b[^<>]*>)\s*")


class Response(Protocol):
    """Response of a test client."""

    @property
    def content(self) -> bytes: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


def read_html(response: Response) -> str:
    """Return the HTML of a response with collapsed white space; other content as it is."""
    text = response.content.decode()
    return collapse_html(text) if response.headers["Content-Type"].startswith("text/html") else text


def collapse_html(text: str) -> str:
    """Return HTML with collapsed white space, without white space around block-level tags; `pre` stays as it is."""
    parts = _KEPT.split(text)
    return "".join(part if number % 2 else _collapse(part) for number, part in enumerate(parts)).strip()


def _collapse(text: str) -> str:
    text = _TAG.sub(lambda tag: re.sub(r"\s+(?=/?>$)", "", re.sub(r"\s+", " ", tag[0])), text)
    return _AROUND_BLOCKS.sub(r"\1", re.sub(r"[ \t\r\n]+", " ", text))
