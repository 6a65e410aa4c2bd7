"""Arguments of a call as lines, expected beside got: a wrong line carries its JSON path and one word."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from toolbench.engine.types import JsonObject
from toolbench.evals.call_comparison import MISSING, ArgumentDifference
from toolbench.lab.traces.code_view import CodeLine, CodeView, escape_unprintable, is_below, render_value

MAX_LINES = 60  # of one side; the step has the rest


@dataclass(frozen=True, slots=True)
class ArgumentLine:
    """A line of arguments.

    Attributes:
        mark: "good" for what was expected, "bad" for what is wrong, "gone" for what is missing, else "".
        path: the JSON path of the difference that begins here; empty for any other line.
        word: one word for the difference.
    """

    text: str
    mark: str = ""
    path: str = ""
    word: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentPane:
    """The lines of one side; `cut` counts those that are not shown."""

    lines: tuple[ArgumentLine, ...]
    cut: int = 0


def render_expected(arguments: JsonObject, differences: Sequence[ArgumentDifference]) -> ArgumentPane:
    """Return the lines of expected arguments, with those that the call differs from marked."""
    words = {difference.path: difference.expected for difference in differences}
    return _cut(_mark(render_value(arguments), words, "good"))


def render_got(arguments: JsonObject, differences: Sequence[ArgumentDifference]) -> ArgumentPane:
    """Return the lines of a call's arguments: wrong ones marked, and one line for each missing argument."""
    words = {difference.path: difference.got for difference in differences if difference.got != MISSING}
    lines = _mark(render_value(arguments), words, "bad")
    gone = [
        ArgumentLine("", "gone", difference.path, difference.got)
        for difference in differences
        if difference.got == MISSING
    ]
    return _cut([*lines[:-1], *gone, lines[-1]] if len(lines) > 1 else [*lines, *gone])


def render_plain(value: object) -> ArgumentPane:
    """Return the lines of a JSON value without any mark; text that is no JSON object is one line."""
    code = render_value(value) if not isinstance(value, str) else CodeView((CodeLine(escape_unprintable(value)),), 0)
    return _cut(_mark(code, {}, ""))


def _mark(code: CodeView, words: dict[str, str], mark: str) -> list[ArgumentLine]:
    lines: list[ArgumentLine] = []
    begun: set[str] = set()
    for line in code.lines:
        path = next((path for path in words if path != "$" and is_below(line.path, [path])), "")
        is_first = bool(path) and path not in begun
        begun.add(path)
        labelled = ArgumentLine(line.text, mark if path else "")
        lines.append(replace(labelled, path=path, word=words[path]) if is_first and words[path] else labelled)
    return lines


def _cut(lines: Sequence[ArgumentLine]) -> ArgumentPane:
    return ArgumentPane(tuple(lines[:MAX_LINES]), max(0, len(lines) - MAX_LINES))
