"""JSON for files, in ASCII, so that NUL and lone surrogates survive as escapes."""

import json
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json


def render_json_bytes(value: Any) -> bytes:
    """Return a value as indented JSON with a final line break.

    NaN and infinities become null. Objects that JSON does not know are written as text.
    """
    finite = json.loads(json.dumps(value, default=str), parse_constant=_replace_constant)
    return json.dumps(finite, indent=2).encode("ascii") + b"\n"


def decode_text(stored: bytes | memoryview | None) -> str:
    """Return stored bytes as text. Lone surrogates are kept; bytes that are not UTF-8 are written as escapes."""
    data = bytes(stored or b"")
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")


def parse_object(stored: bytes | memoryview | None) -> dict[str, Any] | None:
    """Return the JSON object in stored bytes, or None if they hold anything else."""
    try:
        value = read_json(decode_text(stored))
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None


def _replace_constant(name: str) -> None:
    """Return None in place of NaN and the infinities."""
