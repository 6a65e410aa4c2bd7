"""All formats by name, and `auto`, which is all of them at once."""

from collections.abc import Iterable, Sequence

from toolbench.engine.errors import PlanError
from toolbench.engine.formats.definition import Block, Format
from toolbench.engine.formats.families.fenced import FENCED_JSON, whole_fence
from toolbench.engine.formats.families.generic_json import GENERIC_JSON, bare_json
from toolbench.engine.formats.families.hermes import HERMES
from toolbench.engine.formats.families.llama import LLAMA3_JSON, LLAMA3_PYTHON_TAG

AUTO = "auto"
FORMATS = (HERMES, LLAMA3_JSON, LLAMA3_PYTHON_TAG, FENCED_JSON, GENERIC_JSON)


def _auto_bare(names: Sequence[str]) -> tuple[Block, ...]:
    return (*bare_json(names), *whole_fence(names))


def _unique(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Each block once; of one opener, those that say how they begin come first."""
    seen = list(dict.fromkeys(blocks))
    return tuple(sorted(seen, key=lambda block: not block.starts))


def _merged() -> Format:
    blocks = _unique(block for form in FORMATS for block in form.blocks)
    openers = {block.opener for block in blocks}
    dropped = (word for form in FORMATS for word in form.dropped)
    return Format(
        AUTO,
        blocks,
        HERMES.layout,
        HERMES.prompt,
        dropped=tuple(dict.fromkeys(word for word in dropped if word not in openers)),
        reasoning=tuple(dict.fromkeys(pair for form in FORMATS for pair in form.reasoning)),
        bare=_auto_bare,
        native=False,
    )


_BY_NAME = {form.name: form for form in (*FORMATS, _merged())}


def names() -> tuple[str, ...]:
    """The names of all formats; the last is `auto`, which reads and does not write."""
    return tuple(_BY_NAME)


def format_named(name: str) -> Format:
    """The format of this name. Raises PlanError for any other."""
    if name not in _BY_NAME:
        raise PlanError(f"There is no format {name!r}; there are {', '.join(_BY_NAME)}.")
    return _BY_NAME[name]
