"""What addresses of pages ask for, read and written."""

from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import urlencode

from toolbench.lab.whole_numbers import parse_whole_number

MAX_VALUE_CHARACTERS = 200  # characters of a value
MAX_RUNS = 50


class QueryParams(Protocol):
    """Django's QueryDict, as far as it is used here."""

    def get(self, key: str, default: str) -> str: ...

    def getlist(self, key: str) -> Sequence[str]: ...


def parse_run_ids(given: Sequence[str]) -> tuple[tuple[int, ...], bool]:
    """The first MAX_RUNS ids, and whether something was none."""
    parts = [part for value in given for part in value.split(",") if part][:MAX_RUNS]
    found = [parse_whole_number(part) for part in parts]
    return tuple(dict.fromkeys(one for one in found if one is not None)), None in found


def render_query(values: Mapping[str, object], usual: Mapping[str, object]) -> str:
    """Those that are not as usual; `runs` only where the scope is theirs."""
    pairs = [(name, values[name]) for name in usual if values[name] != usual[name]]
    runs = values["runs"] if values["scope"] == "runs" else ()
    return urlencode([*pairs, *(("run", run) for run in (runs if isinstance(runs, tuple) else ()))])
