"""Query strings of pages, and the texts and whole numbers that users and files give."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

MAX_VALUE_CHARACTERS = 200  # characters of a value
MAX_RUNS = 50
MAX_ID = 2**63 - 1  # largest value of a column of ids
_MAX_DIGITS = len(str(MAX_ID))


class QueryParams(Protocol):
    """The methods of Django's QueryDict that the lab uses."""

    def get(self, key: str, default: str) -> str:
        """Return the last value of a key."""
        ...

    def getlist(self, key: str) -> Sequence[str]:
        """Return all values of a key."""
        ...


def parse_run_ids(given: Sequence[str]) -> tuple[tuple[int, ...], bool]:
    """Return the first MAX_RUNS ids, and whether a value was not an id."""
    parts = [part for value in given for part in value.split(",") if part][:MAX_RUNS]
    found = [parse_whole_number(part) for part in parts]
    return tuple(dict.fromkeys(run_id for run_id in found if run_id is not None)), None in found


def render_query(
    values: Mapping[str, object], usual: Mapping[str, object], further: Sequence[tuple[str, str]] = ()
) -> str:
    """Render the values that differ from the defaults; `runs` only where the scope is `runs`.

    Args:
        values: every value by name.
        usual: the defaults.
        further: pairs that are added as they are.
    """
    pairs = [(name, values[name]) for name in usual if values[name] != usual[name]]
    runs = values["runs"] if values["scope"] == "runs" else ()
    return urlencode([*pairs, *further, *(("run", run) for run in (runs if isinstance(runs, tuple) else ()))])


def clean_text(text: str, longest: int | None = None) -> str:
    """Return the text without NUL, which no column accepts, without outer blanks, and cut to `longest` characters."""
    return text.replace("\0", "").strip()[:longest]


def parse_whole_number(text: str, *, least: int = 0, most: int = MAX_ID) -> int | None:
    """Parse a text of plain digits; return None for any other text and for a number out of bounds."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    number = int(text)
    return number if least <= number <= most else None
