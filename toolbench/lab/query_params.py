"""Read and write the query strings of pages."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

from toolbench.lab.whole_numbers import parse_whole_number

MAX_VALUE_CHARACTERS = 200  # characters of a value
MAX_RUNS = 50


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
    return tuple(dict.fromkeys(one for one in found if one is not None)), None in found


def render_query(values: Mapping[str, object], usual: Mapping[str, object]) -> str:
    """Render the values that differ from the defaults; `runs` only where the scope is `runs`."""
    pairs = [(name, values[name]) for name in usual if values[name] != usual[name]]
    runs = values["runs"] if values["scope"] == "runs" else ()
    return urlencode([*pairs, *(("run", run) for run in (runs if isinstance(runs, tuple) else ()))])
