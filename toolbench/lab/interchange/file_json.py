"""JSON for files: ASCII, so that NUL and lone surrogates survive as escapes, and null where a number is not finite."""

import json
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import read_json


def render_json_bytes(value: Any) -> bytes:
    finite = json.loads(json.dumps(value, default=str), parse_constant=_replace_constant)
    return json.dumps(finite, indent=2).encode("ascii") + b"\n"


def decode_text(stored: bytes | memoryview | None) -> str:
    """Stored bytes as text, lone surrogates kept; what is no UTF-8 is written as escapes."""
    data = bytes(stored or b"")
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "backslashreplace")


def parse_object(stored: bytes | memoryview | None) -> dict[str, Any] | None:
    """The JSON object in stored bytes, None when they hold anything else."""
    try:
        value = read_json(decode_text(stored))
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None


def _replace_constant(name: str) -> None:
    """What stands for NaN and the infinities."""
