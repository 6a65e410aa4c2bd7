"""Lines of expected arguments and of a call's arguments, with marks for their differences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.types import JsonObject
from toolbench.evals.call_comparison import MISSING, ArgumentDifference
from toolbench.lab.traces.code_view import CodeLine, CodeView, escape_unprintable, is_below, render_value

MAX_LINES = 60  # of one side; the page of the step shows all lines


@dataclass(frozen=True, slots=True)
class ArgumentLine:
    """Line of arguments.

    Attributes:
        mark: "good" for an expected value that the call does not have, "bad" for a wrong value, "gone" for a missing
            argument, empty for any other line.
        path: JSON path of the difference, only on its first line and only if `word` is not empty.
        word: the difference in a word: a JSON type, `missing`, `extra` or `differs`; empty on lines without `path`.
    """

    text: str
    mark: str = ""
    path: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentPane:
    """Lines of one side, at most MAX_LINES; `omitted` is the number of further lines."""

    lines: tuple[ArgumentLine, ...]
    omitted: int = 0


def render_expected(arguments: JsonObject, differences: Sequence[ArgumentDifference]) -> ArgumentPane:
    """Return the lines of expected arguments, with marks where the call differs."""
    words = {difference.path: difference.expected for difference in differences}
    return _truncate(_mark_lines(render_value(arguments), words, "good"))


def render_made(arguments: JsonObject, differences: Sequence[ArgumentDifference]) -> ArgumentPane:
    """Return the lines of a call's arguments. Wrong values are marked, and each missing argument has a line."""
    words = {difference.path: difference.got for difference in differences if difference.got != MISSING}
    lines = _mark_lines(render_value(arguments), words, "bad")
    missing = [
        ArgumentLine("", "gone", difference.path, difference.got)
        for difference in differences
        if difference.got == MISSING
    ]
    return _truncate([*lines[:-1], *missing, lines[-1]] if len(lines) > 1 else [*lines, *missing])


def render_plain(value: object) -> ArgumentPane:
    """Return the lines of a JSON value without marks; a text is one line."""
    code = render_value(value) if not isinstance(value, str) else CodeView((CodeLine(escape_unprintable(value)),), 0)
    return _truncate(_mark_lines(code, {}, ""))


def _mark_lines(code: CodeView, words: dict[str, str], mark: str) -> list[ArgumentLine]:
    """Return the lines, those of a difference with `mark`. A difference of the whole value, `$`, marks no line.

    Args:
        code: the lines of a value.
        words: each difference in a word, by JSON path; a word may be empty.
        mark: mark of a line with a difference.
    """
    lines: list[ArgumentLine] = []
    labelled_paths: set[str] = set()
    for code_line in code.lines:
        path = next((path for path in words if path != "$" and is_below(code_line.path, [path])), "")
        is_first = bool(path) and path not in labelled_paths
        labelled_paths.add(path)
        line = ArgumentLine(code_line.text, mark if path else "")
        lines.append(replace(line, path=path, word=words[path]) if is_first and words[path] else line)
    return lines


def _truncate(lines: Sequence[ArgumentLine]) -> ArgumentPane:
    return ArgumentPane(tuple(lines[:MAX_LINES]), max(0, len(lines) - MAX_LINES))
