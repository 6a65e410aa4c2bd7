"""JSON in and out, strictly: what is read can always be walked and written again.

No NaN or infinity, no number beyond Python's digit limit, and no nesting deeper than MAX_DEPTH, so that nothing
behind this door ever meets a RecursionError."""

import json
import marshal
import math
from collections.abc import Mapping
from typing import Any

from toolbench.engine.errors import InvalidJsonError

MAX_DEPTH = 128


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def read_finite(text: str) -> float:
    """Return the number in `text`. Raises ValueError for one that is too large for a float."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=read_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
_ASCII_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def read_json(text: str) -> Any:
    """The value written in `text`. Raises InvalidJsonError for anything that is not exactly one JSON value."""
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise InvalidJsonError("not_json", str(error)[:200]) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and is_too_deep(value):
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    return value


def read_json_at(text: str, at: int) -> tuple[Any, int]:
    """The JSON value that begins at `at`, whatever follows it, and where it ends. Raises InvalidJsonError."""
    try:
        value, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise InvalidJsonError("not_json", str(error)[:200]) from None
    if text.count("[", at, end) + text.count("{", at, end) > MAX_DEPTH and is_too_deep(value):
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    return value, end


def is_too_deep(value: Any, limit: int = MAX_DEPTH) -> bool:
    """Whether objects and arrays in `value` are nested deeper than `limit` levels."""
    level = [value]
    for _ in range(limit):
        level = [child for parent in level for child in _iterate_children(parent)]
        if not level:
            return False
    return True


def _iterate_children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [child for child in value.values() if isinstance(child, (dict, list))]
    if isinstance(value, list):
        return [child for child in value if isinstance(child, (dict, list))]
    return []


def write_json(value: Any) -> str:
    """Compact JSON with its characters as they are. Raises TypeError, ValueError or RecursionError for what JSON
    cannot hold."""
    return _ENCODER.encode(value)


def encode_json(value: Any) -> bytes:
    """Compact UTF-8 JSON; a text with lone surrogates is written in ASCII with escapes, so that they survive."""
    try:
        return write_json(value).encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value).encode()


def encode_object(value: Mapping[str, Any], written: Mapping[str, str]) -> bytes:
    """The bytes that `encode_json` gives, where the JSON of some values is there already, by their key."""
    if not written:
        return encode_json(value)
    parts = (f"{write_json(key)}:{written[key] if key in written else write_json(part)}" for key, part in value.items())
    try:
        return f"{{{','.join(parts)}}}".encode()
    except UnicodeEncodeError:
        return encode_json(value)


def sort_keys(value: Any) -> Any:
    """A copy of `value` with the keys of every object in alphabetical order. Raises as write_json does."""
    return json.loads(json.dumps(value, sort_keys=True, allow_nan=False))


def copy_json(value: Any) -> Any:
    """A deep copy of a value that read_json gave."""
    return marshal.loads(marshal.dumps(value))


def get_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else a new empty one."""
    return value if isinstance(value, dict) else {}


def get_text(value: Any) -> str:
    """The value where it is a text, else ""."""
    return value if isinstance(value, str) else ""


def count_utf8_bytes(text: str) -> int:
    """Bytes of `text` in UTF-8; a lone surrogate counts three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def list_object_keys(text: bytes) -> tuple[str, ...]:
    """Return the keys of the JSON object that a text holds; () for anything else."""
    try:
        value = read_json(text.decode())
    except (InvalidJsonError, UnicodeDecodeError):
        return ()
    return tuple(value) if isinstance(value, dict) else ()
