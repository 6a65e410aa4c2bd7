"""Reading of a call's arguments: the object, or the reason for which they cannot be read."""

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, count_utf8_bytes, is_too_deep, read_json, write_json
from toolbench.engine.types import JsonObject, ReadArguments

ARGUMENTS_OK = "ok"
INVALID_JSON = "invalid_json"
TOO_LARGE = "too_large"
_CODE_FENCE = "```"


def read_arguments(raw: object, max_bytes: int, *, value: object = None, standard_only: bool = False) -> ReadArguments:
    """Read the arguments of a call; arguments that cannot be read give a status instead of an exception.

    None and blank text are read as an empty object, unless `standard_only` is set. A text may be enclosed in a code
    fence. It may be double-encoded once: a JSON string whose text is the JSON object.

    Args:
        raw: the arguments as the model sent them: a text, an object or anything else.
        max_bytes: the largest size that is allowed, in UTF-8 bytes.
        value: the parsed value of the text `raw`, None if it is unknown; if it is an object, `raw` is not parsed.
        standard_only: accept only a JSON object as text, without code fence and double encoding. No effect if `value`
            is an object.

    Returns:
        The status (`ok`, `invalid_json` or `too_large`), the size, the object and the problem.
    """
    if standard_only and not isinstance(value, dict):
        return _read_standard(raw, max_bytes)
    if raw is None:
        return ReadArguments(ARGUMENTS_OK, 0, {})
    if isinstance(raw, str) and isinstance(value, dict):
        size = count_utf8_bytes(raw)
        return _build_too_large(size, max_bytes) if size > max_bytes else ReadArguments(ARGUMENTS_OK, size, value)
    if isinstance(raw, str):
        return _read_text(_strip_fence(raw.strip()), max_bytes)
    if isinstance(raw, (dict, list)):
        return _read_value(raw, max_bytes)
    return _build_invalid(0, f"arguments must be an object, not {type(raw).__name__}")


def _read_standard(raw: object, max_bytes: int) -> ReadArguments:
    """Read arguments as the published standards allow them: a text that is a JSON object."""
    if not isinstance(raw, str):
        return _build_invalid(0, f"the standard wants the text of a JSON object, not {_get_json_type(raw)}")
    size = count_utf8_bytes(raw.strip())
    if not size:
        return _build_invalid(0, "the standard wants the text of a JSON object, not a blank one")
    if size > max_bytes:
        return _build_too_large(size, max_bytes)
    try:
        return _check_object(read_json(raw), size)
    except InvalidJsonError as error:
        return _build_invalid(size, str(error))


def measure_arguments(raw: object) -> int:
    """Return the size of arguments in UTF-8 bytes without parsing them.

    For double-encoded arguments, the outer text is measured; `read_arguments` reports the size of the inner one.
    """
    if isinstance(raw, str):
        return count_utf8_bytes(_strip_fence(raw.strip()))
    return _read_value(raw, 0).size if isinstance(raw, (dict, list)) else 0


def _read_text(text: str, max_bytes: int) -> ReadArguments:
    """Read arguments in a text without white space or code fence around it."""
    size = count_utf8_bytes(text)
    if not text:
        return ReadArguments(ARGUMENTS_OK, 0, {})
    if size > max_bytes:
        return _build_too_large(size, max_bytes)
    try:
        value = read_json(text)
        if isinstance(value, str):
            size = count_utf8_bytes(value)  # not larger than the outer text, so the limit needs no second check
            value = read_json(value)
    except InvalidJsonError as error:
        return _build_invalid(size, str(error))
    return _check_object(value, size)


def _read_value(raw: JsonObject | list[object], max_bytes: int) -> ReadArguments:
    """Read arguments that are an object or a list instead of a text."""
    try:
        text = write_json(raw)
        if text.count("{") + text.count("[") > MAX_DEPTH and is_too_deep(raw):
            raise RecursionError
    except RecursionError:
        return _build_invalid(0, "arguments are nested too deeply")
    except (TypeError, ValueError) as error:
        return _build_invalid(0, str(error)[:200])
    size = count_utf8_bytes(text)
    return _build_too_large(size, max_bytes) if size > max_bytes else _check_object(raw, size)


def _check_object(value: object, size: int) -> ReadArguments:
    if isinstance(value, dict):
        return ReadArguments(ARGUMENTS_OK, size, value)
    return _build_invalid(size, f"arguments must be an object, not {_get_json_type(value)}")


def _get_json_type(value: object) -> str:
    type_names = {
        dict: "an object",
        list: "an array",
        str: "a text",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return type_names.get(type(value), "null")


def _strip_fence(text: str) -> str:
    """Return the content of the code fence around `text`, without the word `json`; `text` itself if it has no fence."""
    if not (len(text) >= 2 * len(_CODE_FENCE) and text.startswith(_CODE_FENCE) and text.endswith(_CODE_FENCE)):
        return text
    content = text[len(_CODE_FENCE) : -len(_CODE_FENCE)]
    return (content[4:] if content[:4].lower() == "json" else content).strip()


def _build_invalid(size: int, problem: str) -> ReadArguments:
    return ReadArguments(INVALID_JSON, size, problem=problem)


def _build_too_large(size: int, max_bytes: int) -> ReadArguments:
    return ReadArguments(TOO_LARGE, size, problem=f"the arguments are {size} bytes; at most {max_bytes} are allowed")
