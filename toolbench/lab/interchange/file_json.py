"""JSON and texts of exported files, and reading of stored bodies as text or JSON."""

import json
from typing import Any

from toolbench.engine.strict_json import find_object
from toolbench.providers.masking.secrets import Masker


def render_json_bytes(value: Any) -> bytes:
    """Return a value as indented ASCII JSON with a final line break.

    NaN and infinities become null. Objects without a JSON type are written as the text of `str`.
    """
    return json.dumps(clean_json(value), indent=2).encode("ascii") + b"\n"


def render_masked_json(value: Any, masker: Masker) -> bytes:
    """Return a value as compact JSON in UTF-8, cleaned by `clean_json` and with secrets masked.

    Lone surrogates become question marks, since other programs refuse lone surrogates.
    """
    text = json.dumps(clean_json(value), ensure_ascii=False, separators=(",", ":"))
    return masker.mask_body(text.encode("utf-8", "replace"), join_parts=False)


def clean_json(value: Any) -> Any:
    """Return a copy with only JSON types: NaN and infinities become null, other objects the text of `str`."""
    return json.loads(json.dumps(value, default=str), parse_constant=_replace_constant)


def encode_text(text: str) -> bytes:
    """Return a text as UTF-8; lone surrogates, which texts of models may have, become backslash escapes."""
    return text.encode("utf-8", "backslashreplace")


def decode_text(stored: bytes | memoryview | None) -> str:
    r"""Return stored bytes as text; "" for None.

    Lone surrogates are kept if all other bytes are valid UTF-8. Otherwise every invalid byte, those of surrogates
    included, becomes an escape such as `\xed`.
    """
    content = bytes(stored or b"")
    try:
        return content.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return content.decode("utf-8", "backslashreplace")


def parse_object(stored: bytes | memoryview | None) -> dict[str, Any] | None:
    """Return the JSON object in stored bytes, or None if they contain another JSON value or no valid JSON."""
    return find_object(decode_text(stored))


def _replace_constant(name: str) -> None:
    """Return None for NaN and the infinities."""
