"""Which parameters of a request are optional, and which of them an endpoint's refusal names."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolbench.engine.events import ExchangeError

REFUSALS = ("request_rejected", "unprocessable")  # codes of requests that were refused for what they hold
_STATUSES = (400, 422)
_MOST_READ = 4000  # characters of an error
_SUGGESTED = re.compile(r"(?i)\b(?:did you mean|use(?!\s+of)|try)\b[^.;\n]*")
_INSIDE = re.compile(r"(?i)\b(?:messages|tools|contents|input)\s*(?:\[|\.|/)\s*\d|\broles?\b")
_PLACES = re.compile(r"""(?i)["']loc["']\s*:\s*[\[(]([^\])]*)[\])]""")
_QUOTES = "[\"'`‘’“”]"
_BESIDE = r"(?:parameters?|params?|arguments?|fields?|property|properties|options?|keys?)"


@dataclass(frozen=True, slots=True)
class OptionalParameter:
    """`differs` says what is no longer measured without it, "" for nothing."""

    name: str
    differs: str
    word: bool = False


OPTIONAL: Mapping[str, OptionalParameter] = {
    row["name"]: OptionalParameter(**row)
    for row in json.loads((Path(__file__).parents[1] / "data" / "optional_parameters.json").read_text("utf-8"))[
        "parameters"
    ]
}


def differs_without(name: str) -> str:
    """Return what a trial without this parameter no longer measures; "" for nothing."""
    return OPTIONAL[name].differs if name in OPTIONAL else ""


def refused_parameters(error: ExchangeError, sent: Collection[str]) -> tuple[str, ...]:
    """Return the optional parameters that a refusal names and the request had.

    Where the error has fields for the place (`param`, `loc`) only these count; else its sentences. What stands inside
    messages or tools is no parameter, and what a sentence suggests instead is not what it refuses.

    Args:
        error: what became of the request.
        sent: the keys of its body.
    """
    if error.code not in REFUSALS or (error.status not in (None, *_STATUSES) and (error.status or 0) >= 300):
        return ()
    asked = [name for name in OPTIONAL if name in sent]
    said = f"{error.message}\n{error.hint}"[:_MOST_READ]
    places = [*error.named, *_places_in(said)]
    if places:
        named = {_spelled(_first(place)) for place in places}
        return tuple(name for name in asked if _spelled(name) in named)
    if _INSIDE.search(said):
        return ()
    text = _SUGGESTED.sub("", said)
    return tuple(name for name in asked if _is_named(OPTIONAL[name], text))


def _places_in(text: str) -> Iterator[str]:
    """The places in errors of pydantic that travel as text."""
    for found in _PLACES.findall(text):
        parts = [part.strip().strip("\"'") for part in found.split(",") if part.strip()]
        yield ".".join(part for part in parts if part != "body")


def _first(place: str) -> str:
    return re.split(r"[.\[/]", place.removeprefix("$.").removeprefix("body.").lstrip("#/"))[0]


def _spelled(name: str) -> str:
    """A name as vendors spell it: `presencePenalty` is presence_penalty."""
    return name.replace("_", "").lower()


def _is_named(parameter: OptionalParameter, text: str) -> bool:
    name = "_?".join(map(re.escape, parameter.name.split("_")))
    if not parameter.word:
        return re.search(rf"(?i)(?<![\w.-]){name}(?![\w-])", text) is not None
    found = (
        rf"{_QUOTES}{name}{_QUOTES}",
        rf"(?m)(?:^|[\n(\[{{]\s*){name}\s*:",
        rf"\b{_BESIDE}\b(?:\s+supplied)?(?:\s+is|\s+are)?\s*:?\s*{name}\b",
        rf"(?<![\w.-]){name}\s+{_BESIDE}\b",
        rf"(?<![\w.-]){name}\s+(?:is|are)\s+(?:not|un)\w*",
        rf"#/{name}\b",
        rf"\bbody\.{name}\b",
        rf"\bnot\s+support(?:ed|ing)?\s+(?:the\s+)?(?:use\s+of\s+)?{name}\b",
        rf"(?<![\w.-]){name}=",
    )
    return any(re.search(f"(?i){one}", text) for one in found)
