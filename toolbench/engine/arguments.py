"""Reading the arguments of a call: anything a model sends becomes an object, or a plain reason why not."""

from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import MAX_DEPTH, is_too_deep, read_json, utf8_size, write_json
from toolbench.engine.messages import JsonObject, ReadArguments

OK = "ok"
INVALID_JSON = "invalid_json"
TOO_LARGE = "too_large"
_FENCE = "```"


def read_arguments(raw: object, max_bytes: int, *, value: object = None, standard_only: bool = False) -> ReadArguments:
    """No arguments and blank text are an empty object. A text may stand in a code fence, and may hold a JSON text that
    holds the object (double encoding, once). With `standard_only` only the text of a JSON object is read. The limit is
    exact: `max_bytes` bytes are allowed. `value` is what `raw` was written from, where that is known: an object is not
    read again."""
    if standard_only and not isinstance(value, dict):
        return _from_standard(raw, max_bytes)
    if raw is None:
        return ReadArguments(OK, 0, {})
    if isinstance(raw, str) and isinstance(value, dict):
        size = utf8_size(raw)
        return _too_large(size, max_bytes) if size > max_bytes else ReadArguments(OK, size, value)
    if isinstance(raw, str):
        return _from_text(_unfenced(raw.strip()), max_bytes)
    if isinstance(raw, (dict, list)):
        return _from_value(raw, max_bytes)
    return _invalid(0, f"arguments must be an object, not {type(raw).__name__}")


def _from_standard(raw: object, max_bytes: int) -> ReadArguments:
    if not isinstance(raw, str):
        return _invalid(0, f"the standard wants the text of a JSON object, not {_json_type(raw)}")
    size = utf8_size(raw.strip())
    if not size:
        return _invalid(0, "the standard wants the text of a JSON object, not a blank one")
    if size > max_bytes:
        return _too_large(size, max_bytes)
    try:
        return _object_or_invalid(read_json(raw), size)
    except BadJson as error:
        return _invalid(size, str(error))


def arguments_size(raw: object) -> int:
    """The `size` that reading would give, without reading."""
    if isinstance(raw, str):
        return utf8_size(_unfenced(raw.strip()))
    return _from_value(raw, 0).size if isinstance(raw, (dict, list)) else 0


def _from_text(text: str, max_bytes: int) -> ReadArguments:
    size = utf8_size(text)
    if not text:
        return ReadArguments(OK, 0, {})
    if size > max_bytes:
        return _too_large(size, max_bytes)
    try:
        value = read_json(text)
        if isinstance(value, str):
            size = utf8_size(value)  # never more than that of the text it stood in
            value = read_json(value)
    except BadJson as error:
        return _invalid(size, str(error))
    return _object_or_invalid(value, size)


def _from_value(raw: JsonObject | list[object], max_bytes: int) -> ReadArguments:
    try:
        text = write_json(raw)
        if text.count("{") + text.count("[") > MAX_DEPTH and is_too_deep(raw):
            raise RecursionError
    except RecursionError:
        return _invalid(0, "arguments are nested too deeply")
    except (TypeError, ValueError) as error:
        return _invalid(0, str(error)[:200])
    size = utf8_size(text)
    return _too_large(size, max_bytes) if size > max_bytes else _object_or_invalid(raw, size)


def _object_or_invalid(value: object, size: int) -> ReadArguments:
    if isinstance(value, dict):
        return ReadArguments(OK, size, value)
    return _invalid(size, f"arguments must be an object, not {_json_type(value)}")


def _json_type(value: object) -> str:
    names = {dict: "an object", list: "an array", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")


def _unfenced(text: str) -> str:
    """The inside of a code fence that spans the whole text, with or without the word json; else the text itself."""
    if not (len(text) >= 2 * len(_FENCE) and text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    inside = text[len(_FENCE) : -len(_FENCE)]
    return (inside[4:] if inside[:4].lower() == "json" else inside).strip()


def _invalid(size: int, problem: str) -> ReadArguments:
    return ReadArguments(INVALID_JSON, size, problem=problem)


def _too_large(size: int, max_bytes: int) -> ReadArguments:
    return ReadArguments(TOO_LARGE, size, problem=f"the arguments are {size} bytes; at most {max_bytes} are allowed")
