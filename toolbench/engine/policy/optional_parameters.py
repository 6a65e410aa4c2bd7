"""Optional parameters of requests, and which of them a refusal of the endpoint names."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolbench.engine.events import ExchangeError

REFUSAL_CODES = ("request_rejected", "unprocessable")  # codes of requests that were refused for what they hold
_REFUSAL_STATUSES = (400, 422)
_MAX_READ_CHARACTERS = 4000  # characters of an error
_SUGGESTED = re.compile(r"(?i)\b(?:did you mean|use(?!\s+of)|try)\b[^.;\n]*")
_INSIDE = re.compile(r"(?i)\b(?:messages|tools|contents|input)\s*(?:\[|\.|/)\s*\d|\broles?\b")
_PLACES = re.compile(r"""(?i)["']loc["']\s*:\s*[\[(]([^\])]*)[\])]""")
_QUOTES = "[\"'`‘’“”]"
_BESIDE = r"(?:parameters?|params?|arguments?|fields?|property|properties|options?|keys?)"


@dataclass(frozen=True, slots=True)
class OptionalParameter:
    """An optional parameter.

    Attributes:
        differs: what is not measured without it; "" for nothing.
        word: whether its name is a common word, so that it counts only in the position of a name.
    """

    name: str
    differs: str
    word: bool = False


OPTIONAL_PARAMETERS: Mapping[str, OptionalParameter] = {
    row["name"]: OptionalParameter(**row)
    for row in json.loads((Path(__file__).parents[1] / "data" / "optional_parameters.json").read_text("utf-8"))[
        "parameters"
    ]
}


def describe_difference(name: str) -> str:
    """Return what a trial without this parameter does not measure; "" for nothing."""
    return OPTIONAL_PARAMETERS[name].differs if name in OPTIONAL_PARAMETERS else ""


def list_refused_parameters(error: ExchangeError, sent: Collection[str]) -> tuple[str, ...]:
    """Return the optional parameters that a refusal names and the request had.

    If the error has fields for the place (`param`, `loc`), only these count, otherwise its sentences. Names inside
    messages or tools do not count, nor does what a sentence suggests instead.

    Args:
        error: the error of the request.
        sent: the keys of its body.
    """
    if error.code not in REFUSAL_CODES or (
        error.status not in (None, *_REFUSAL_STATUSES) and (error.status or 0) >= 300
    ):
        return ()
    requested = [name for name in OPTIONAL_PARAMETERS if name in sent]
    error_text = f"{error.message}\n{error.hint}"[:_MAX_READ_CHARACTERS]
    places = [*error.named, *_list_locations(error_text)]
    if places:
        named = {_normalise_name(_get_first_key(place)) for place in places}
        return tuple(name for name in requested if _normalise_name(name) in named)
    if _INSIDE.search(error_text):
        return ()
    text = _SUGGESTED.sub("", error_text)
    return tuple(name for name in requested if _is_named(OPTIONAL_PARAMETERS[name], text))


def _list_locations(text: str) -> Iterator[str]:
    """Yield the places in pydantic errors that are sent as text."""
    for found in _PLACES.findall(text):
        parts = [part.strip().strip("\"'") for part in found.split(",") if part.strip()]
        yield ".".join(part for part in parts if part != "body")


def _get_first_key(place: str) -> str:
    return re.split(r"[.\[/]", place.removeprefix("$.").removeprefix("body.").lstrip("#/"))[0]


def _normalise_name(name: str) -> str:
    """Return a name without underscores in lower case: vendors write `presencePenalty` for presence_penalty."""
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
    return any(re.search(f"(?i){pattern}", text) for pattern in found)
