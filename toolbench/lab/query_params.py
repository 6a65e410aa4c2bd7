"""Reading and writing of query strings, cleaning of texts, and parsing of whole numbers from users and files."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

MAX_VALUE_CHARACTERS = 200  # of one value in a query string
MAX_RUNS = 50  # in one query string
MAX_ID = 2**63 - 1  # of a bigint column
_MAX_DIGITS = len(str(MAX_ID))


class QueryParams(Protocol):
    """Protocol with the methods of Django's QueryDict that the lab uses."""

    def get(self, key: str, default: str) -> str:
        """Return the last value of a key, or `default` if there is none."""
        ...

    def getlist(self, key: str) -> Sequence[str]:
        """Return all values of a key; empty if there is none."""
        ...


def parse_run_ids(values: Sequence[str]) -> tuple[tuple[int, ...], bool]:
    """Parse the ids of runs; each value is one id or a comma-separated list.

    Returns:
        The ids among the first MAX_RUNS entries of the lists, without repeats; and whether an entry was ignored, since
        it is not an id or comes after the first MAX_RUNS. Empty entries do not count.
    """
    entries = [entry for value in values for entry in value.split(",") if entry]
    run_ids = [parse_whole_number(entry) for entry in entries[:MAX_RUNS]]
    has_unreadable = None in run_ids or len(entries) > MAX_RUNS
    return tuple(dict.fromkeys(run_id for run_id in run_ids if run_id is not None)), has_unreadable


def render_query(
    values: Mapping[str, object], defaults: Mapping[str, object], extra_pairs: Sequence[tuple[str, str]] = ()
) -> str:
    """Render the values that differ from the defaults as a query string.

    Args:
        values: every value by name. `runs` (ids) is rendered as `run` parameters, only if `scope` is "runs".
        defaults: the default of each value that is rendered under its own name.
        extra_pairs: names and values to add unchanged.
    """
    pairs = [(name, values[name]) for name in defaults if values[name] != defaults[name]]
    runs = values["runs"] if values["scope"] == "runs" else ()
    return urlencode([*pairs, *extra_pairs, *(("run", run) for run in (runs if isinstance(runs, tuple) else ()))])


def describe_unreadable(names: Iterable[str]) -> str:
    """Return the sentence about parameters that a query ignores."""
    return f"Change {', '.join(names)}: a value cannot be read, or another value excludes it."


def clean_text(text: str, max_characters: int | None = None) -> str:
    """Remove NUL, which no column accepts, and outer white space; the result has at most `max_characters`, if given."""
    return text.replace("\0", "").strip()[:max_characters].rstrip()


def normalise_lines(text: str) -> str:
    """Return the text with LF at the ends of lines.

    Browsers send CR LF, but count a line break as one character against the maximum length.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n")


def parse_whole_number(text: str, *, minimum: int = 0, maximum: int = MAX_ID) -> int | None:
    """Parse a text of 1 to 19 ASCII digits; return None for any other text and for a number out of bounds."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS):
        return None
    number = int(text)
    return number if minimum <= number <= maximum else None
