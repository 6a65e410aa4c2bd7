"""Padding of the user's message in scenarios of long context."""

from collections.abc import Mapping
from itertools import product
from random import Random
from typing import Any

from toolbench.evals.scenarios.wording import fill_placeholders


def pad_text(text: str, padding: Mapping[str, Any], values: Mapping[str, Any], source: Random) -> str:
    """Return the user's message, preceded by many similar lines, one of which has the task's values.

    That line is at a random position, but never the last.

    Args:
        text: The user's message.
        padding: `text`, the wording of a line with placeholders; `first` and `last`, lists of first and last names; and
            `lines`, the number of lines, at least 2. Without `lines` the message is returned unchanged.
        values: The values of the task, with `first`, `last` and `number`; not read without `lines`.
        source: The random generator.
    """
    if "lines" not in padding:
        return text
    task_names = (values["first"], values["last"])
    other_names = [names for names in product(padding["first"], padding["last"]) if names != task_names]
    drawn_names = source.sample(other_names, padding["lines"] - 1)
    lines = [_render_line(padding["text"], first, last, source.randint(10, 999)) for first, last in drawn_names]
    lines.insert(source.randrange(len(lines)), _render_line(padding["text"], *task_names, values["number"]))
    return "\n".join([*lines, "", text])


def _render_line(text: str, first: str, last: str, number: int) -> str:
    line: str = fill_placeholders(text, {"first": first, "last": last, "number": str(number)})
    return line
