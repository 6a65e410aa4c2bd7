"""Reading of values that are written as JSON or as Python literals. No code is evaluated."""

import ast
import math
import re
from contextlib import suppress
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.strict_json import MAX_DEPTH, is_too_deep, read_json

MAX_PYTHON_LENGTH = 1_000_000  # characters of the longest text that is given to Python's parser
MAX_INTEGER_BITS = 14_000  # slightly less than 4300 decimal digits, the most that Python converts to text
_JSON_WORDS = {"true": True, "false": False, "null": None}
# Group 1 is a string. Outside of strings an escape is matched too, so that an escaped quote begins no string.
_STRING_OR_LEADING_ZEROS = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\\.|(?<![\w.])0+(?=\d)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KNOWN_ESCAPES = frozenset("\\'\"abfnrtvxuU01234567\n")


def read_value(text: str) -> Any:
    """Return the JSON value in `text`, or the value of the Python literal if it is not JSON.

    Raises:
        InvalidJsonError: the text is neither of them, is too long or is nested too deeply.
    """
    try:
        return read_json(text)
    except InvalidJsonError:
        return evaluate_literal(parse_python(text.strip()))


def parse_python(text: str, *, is_exact: bool = False) -> ast.expr:
    """Return the syntax tree of one expression.

    Args:
        text: the expression.
        is_exact: whether to accept only valid Python. Otherwise line breaks in strings, unknown escapes and leading
            zeros are repaired, and positions in the tree may differ from those in the text.

    Raises:
        InvalidJsonError: the text is too long, nested too deeply, or not one expression.
    """
    if len(text) > MAX_PYTHON_LENGTH:
        raise InvalidJsonError("too_long", f"more than {MAX_PYTHON_LENGTH} characters of Python")
    if _measure_nesting(text) > MAX_DEPTH:
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    try:
        if is_exact:
            return ast.parse(text, mode="eval").body
        # Python only warns of unknown escapes, so a text with a backslash is always repaired.
        if "\\" not in text:
            with suppress(SyntaxError):
                return ast.parse(text, mode="eval").body
        return ast.parse(_STRING_OR_LEADING_ZEROS.sub(_repair_string_or_number, text), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidJsonError("not_python", str(error)[:200]) from None


def evaluate_literal(node: ast.expr) -> Any:
    """Return the JSON value of a literal; tuples and sets become lists.

    The names true, false and null are read as in JSON.

    Raises:
        InvalidJsonError: the node is not a literal or is nested too deeply, or JSON cannot hold its value.
    """
    try:
        value = _evaluate_literal(node)
    except RecursionError:  # repeated signs before a number nest without brackets
        raise InvalidJsonError("too_deep", "nested too deeply") from None
    if is_too_deep(value):
        raise InvalidJsonError("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    return value


def _evaluate_literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) or _is_json_constant(node.value):
            return node.value
    elif isinstance(node, ast.Dict):
        return {_evaluate_key(key): _evaluate_literal(value) for key, value in zip(node.keys, node.values, strict=True)}
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_evaluate_literal(item) for item in node.elts]
    return _evaluate_atom(node)


def _evaluate_atom(node: ast.expr) -> Any:
    if isinstance(node, ast.Name) and node.id in _JSON_WORDS:
        return _JSON_WORDS[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        number = _evaluate_literal(node.operand)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return -number if isinstance(node.op, ast.USub) else number
    raise InvalidJsonError("not_literal", f"{type(node).__name__} is no plain value")


def _is_json_constant(value: object) -> bool:
    """Return whether JSON can hold a constant.

    It cannot hold bytes, complex numbers, infinity, or integers of more than MAX_INTEGER_BITS.
    """
    if isinstance(value, int):
        return value.bit_length() <= MAX_INTEGER_BITS
    return value is None or isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _evaluate_key(key: ast.expr | None) -> str:
    name = _evaluate_literal(key) if key is not None else None
    if not isinstance(name, str):
        raise InvalidJsonError("not_literal", "the keys of an object must be texts")
    return name


def _repair_string_or_number(match: re.Match[str]) -> str:
    string = match[1]
    if string is None:
        return match[0] if match[0].startswith("\\") else ""
    if "\\" in string:
        string = _ESCAPE.sub(lambda escape: escape[0] if escape[1] in _KNOWN_ESCAPES else "\\" + escape[0], string)
    return string.replace("\n", "\\n").replace("\r", "\\r")


def _measure_nesting(text: str) -> int:
    """Return the number of opening brackets if it is at most MAX_DEPTH, else the depth to which brackets nest.

    Brackets in strings count, too, so closing ones can hide levels; `evaluate_literal` checks the value.
    """
    if (bracket_count := sum(map(text.count, "[({"))) <= MAX_DEPTH:
        return bracket_count
    depth = max_depth = 0
    for bracket in re.finditer(r"[\[\](){}]", text):
        depth = depth + 1 if bracket.group() in "[({" else max(depth - 1, 0)
        max_depth = max(max_depth, depth)
    return max_depth
