"""Long contexts: one relevant line at a random place among many similar ones."""

from collections.abc import Mapping
from itertools import product
from random import Random
from typing import Any

from toolbench.evals.scenarios.wording import fill_placeholders


def pad_text(text: str, rows: Mapping[str, Any], values: Mapping[str, Any], source: Random) -> str:
    """Return the text below `lines` lines, one with `values` and the others with other names.

    Without `lines` in `rows` the text is returned unchanged.
    """
    if "lines" not in rows:
        return text
    ends = (values["first"], values["last"])
    names = [pair for pair in product(rows["first"], rows["last"]) if pair != ends]
    drawn = source.sample(names, rows["lines"] - 1)
    lines = [_draw_line(rows["text"], first, last, source.randint(10, 999)) for first, last in drawn]
    lines.insert(source.randrange(len(lines)), _draw_line(rows["text"], *ends, values["number"]))
    return "\n".join([*lines, "", text])


def _draw_line(text: str, first: str, last: str, number: int) -> str:
    line: str = fill_placeholders(text, {"first": first, "last": last, "number": str(number)})
    return line
