"""Strict reading and writing of JSON: every value that is read can be walked and written again.

NaN, infinity and numbers that are too large for Python are refused. So is nesting deeper than MAX_DEPTH, so that
recursive code cannot raise RecursionError on a value that was read.
"""

import json
import marshal
import math
from collections.abc import Mapping
from typing import Any

from toolbench.engine.errors import InvalidJsonError

MAX_DEPTH = 128  # levels of objects and arrays


def _refuse_constant(constant_name: str) -> float:
    raise ValueError(f"{constant_name} is not JSON")


def read_finite(text: str) -> float:
    """Return a JSON number as a float. JSON decoders call it, so `text` is never "nan" or "inf".

    Raises:
        ValueError: the number is too large for a float.
    """
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=read_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False)
_ASCII_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)


def read_json(text: str) -> Any:
    """Return the value of the JSON `text`.

    Raises:
        InvalidJsonError: the text is not exactly one JSON value, is nested too deeply, or has a number that is too
            large for Python.
    """
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise InvalidJsonError("not_json", str(error)[:200]) from None
    if text.count("[") + text.count("{") > MAX_DEPTH and is_too_deep(value):
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    return value


def read_json_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at offset `start`, and the offset after it; any text may follow.

    Raises:
        InvalidJsonError: no valid JSON value begins there, it is nested too deeply, or it has a number that is too
            large for Python.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise InvalidJsonError("not_json", str(error)[:200]) from None
    if text.count("[", start, end) + text.count("{", start, end) > MAX_DEPTH and is_too_deep(value):
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    return value, end


def find_object(text: str) -> dict[str, Any] | None:
    """Return the object that a JSON text contains; None if the text is no JSON object."""
    try:
        value = read_json(text)
    except InvalidJsonError:
        return None
    return value if isinstance(value, dict) else None


def is_too_deep(value: Any, max_depth: int = MAX_DEPTH) -> bool:
    """Return whether objects and arrays in `value` are nested deeper than `max_depth` levels."""
    values = [value]
    for _ in range(max_depth):
        values = [child for parent in values for child in _list_nested_containers(parent)]
        if not values:
            return False
    return True


def _list_nested_containers(value: Any) -> list[Any]:
    """Return the objects and arrays directly inside `value`."""
    if isinstance(value, dict):
        return [child for child in value.values() if isinstance(child, (dict, list))]
    if isinstance(value, list):
        return [child for child in value if isinstance(child, (dict, list))]
    return []


def write_json(value: Any) -> str:
    """Return compact JSON in which characters beyond ASCII are not escaped.

    Raises:
        TypeError: a value has a type that JSON cannot represent.
        ValueError: a number is NaN, infinite, or has more digits than Python writes.
        RecursionError: the value is nested too deeply.
    """
    return _ENCODER.encode(value)


def encode_json(value: Any) -> bytes:
    """Return compact JSON in UTF-8.

    A value with lone surrogates is written in ASCII with escapes, since UTF-8 cannot encode them.

    Raises:
        TypeError, ValueError, RecursionError: as for `write_json`.
    """
    try:
        return write_json(value).encode()
    except UnicodeEncodeError:
        return _ASCII_ENCODER.encode(value).encode()


def encode_object(value: Mapping[str, Any], json_by_key: Mapping[str, str]) -> bytes:
    """Return the same bytes as `encode_json(value)`, reusing the known JSON text of some values.

    Args:
        value: the object to write.
        json_by_key: the JSON text of some of its values, by key, as `write_json` returns it.

    Raises:
        TypeError, ValueError, RecursionError: as for `write_json`.
    """
    if not json_by_key:
        return encode_json(value)
    rendered_members = (
        f"{write_json(key)}:{json_by_key[key] if key in json_by_key else write_json(member_value)}"
        for key, member_value in value.items()
    )
    try:
        return f"{{{','.join(rendered_members)}}}".encode()
    except UnicodeEncodeError:
        return encode_json(value)


def sort_keys(value: Any) -> Any:
    """Return a copy of `value` in which the keys of every object are sorted.

    Raises:
        TypeError, ValueError, RecursionError: as for `write_json`.
    """
    return json.loads(json.dumps(value, sort_keys=True, allow_nan=False))


def copy_json(value: Any) -> Any:
    """Return a deep copy of a value of JSON types.

    Raises:
        ValueError: a part has a type that `marshal` does not know, or is nested too deeply for it.
    """
    return marshal.loads(marshal.dumps(value))


def get_object(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else a new empty one."""
    return value if isinstance(value, dict) else {}


def get_text(value: Any) -> str:
    """Return `value` if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def count_utf8_bytes(text: str) -> int:
    """Return the number of bytes of `text` in UTF-8; a lone surrogate counts as 3."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def list_object_keys(json_bytes: bytes) -> tuple[str, ...]:
    """Return the keys of a JSON object in order; () if `json_bytes` is not a JSON object in UTF-8."""
    try:
        return tuple(find_object(json_bytes.decode()) or ())
    except UnicodeDecodeError:
        return ()
