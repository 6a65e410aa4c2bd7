"""Values written as JSON or as Python literals. Nothing is ever evaluated."""

import ast
import math
import re
from typing import Any

from toolbench.engine.errors import BadJson
from toolbench.engine.json_text import MAX_DEPTH, is_too_deep, read_json

MAX_PYTHON = 1_000_000  # characters of Python that are handed to the parser
MAX_BITS = 14_000  # a little less than the 4300 digits that Python is willing to write
_WORDS = {"true": True, "false": False, "null": None}
_PART = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(?<![\w.])0+(?=\d)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_KNOWN_ESCAPES = frozenset("\\'\"abfnrtvxuU01234567\n")


def read_value(text: str) -> Any:
    """A JSON value, or failing that a Python literal. Raises BadJson for anything else."""
    try:
        return read_json(text)
    except BadJson:
        return literal(python_tree(text.strip()))


def python_tree(text: str) -> ast.expr:
    """The syntax tree of one expression. Raw line breaks in strings, unknown escapes and leading zeros are put up with.
    Raises BadJson."""
    if len(text) > MAX_PYTHON:
        raise BadJson("too_long", f"more than {MAX_PYTHON} characters of Python")
    if _nesting(text) > MAX_DEPTH:
        raise BadJson("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    try:
        return ast.parse(_PART.sub(_tolerated, text), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BadJson("not_python", str(error)[:200]) from None


def literal(node: ast.expr) -> Any:
    """The JSON value of a literal: tuples and sets are lists. Raises BadJson for what is none."""
    try:
        value = _literal(node)
    except RecursionError:
        raise BadJson("too_deep", "nested too deeply") from None
    if is_too_deep(value):
        raise BadJson("too_deep", f"nested deeper than {MAX_DEPTH} levels")
    return value


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and _is_plain(node.value):
        return node.value
    if isinstance(node, ast.Name) and node.id in _WORDS:
        return _WORDS[node.id]
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_literal(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return dict(_entry(key, value) for key, value in zip(node.keys, node.values, strict=True))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        number = _literal(node.operand)
        if isinstance(number, (int, float)) and not isinstance(number, bool):
            return -number if isinstance(node.op, ast.USub) else number
    raise BadJson("not_literal", f"{type(node).__name__} is no plain value")


def _is_plain(value: object) -> bool:
    """Whether JSON can hold a constant: no bytes, no infinity, no number beyond Python's digit limit."""
    if isinstance(value, int):
        return value.bit_length() <= MAX_BITS
    return value is None or isinstance(value, str) or (isinstance(value, float) and math.isfinite(value))


def _entry(key: ast.expr | None, value: ast.expr) -> tuple[str, Any]:
    name = _literal(key) if key is not None else None
    if not isinstance(name, str):
        raise BadJson("not_literal", "the keys of an object must be texts")
    return name, _literal(value)


def _tolerated(part: re.Match[str]) -> str:
    string = part[1]
    if string is None:
        return ""
    if "\\" in string:
        string = _ESCAPE.sub(lambda found: found[0] if found[1] in _KNOWN_ESCAPES else "\\" + found[0], string)
    return string.replace("\n", "\\n").replace("\r", "\\r")


def _nesting(text: str) -> int:
    """An upper bound of how deeply brackets are nested; those in strings count too."""
    depth = deepest = 0
    for found in re.finditer(r"[\[\](){}]", text):
        depth = depth + 1 if found.group() in "[({" else max(depth - 1, 0)
        deepest = max(deepest, depth)
    return deepest
