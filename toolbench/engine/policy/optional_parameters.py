"""Optional parameters of requests, and detection of those that an endpoint's error names."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from toolbench.engine.events import ExchangeError

REFUSAL_CODES = ("request_rejected", "unprocessable")  # error codes of requests that were refused for their content
_REFUSAL_STATUSES = (400, 422)
_MAX_READ_CHARACTERS = 4000  # of the message and the hint of an error
# The words of a message that suggest another parameter, such as "use max_completion_tokens instead".
_SUGGESTION = re.compile(r"(?i)\b(?:did you mean|use(?!\s+of)|try)\b[^.;\n]*")
# A place inside messages or tools, such as "messages[0]", "tools.1" or "role".
_NESTED_LOCATION = re.compile(r"(?i)\b(?:messages|tools|contents|input)\s*(?:\[|\.|/)\s*\d|\broles?\b")
# The location of a pydantic error, such as `"loc": ["body", "seed"]`.
_LOCATION = re.compile(r"""(?i)["']loc["']\s*:\s*[\[(]([^\])]*)[\])]""")
_QUOTES = "[\"'`‘’“”]"
_PARAMETER_NOUN = r"(?:parameters?|params?|arguments?|fields?|property|properties|options?|keys?)"


@dataclass(frozen=True, slots=True)
class OptionalParameter:
    """An optional parameter of a request.

    Attributes:
        difference: a sentence on how a trial without the parameter differs; "" if nothing that is measured differs.
        is_common_word: whether the name is a common word, so that a message may contain it in another sense. It then
            names the parameter only if it is marked, such as by quotes or by the word "parameter" beside it.
    """

    name: str
    difference: str
    is_common_word: bool = False


OPTIONAL_PARAMETERS: Mapping[str, OptionalParameter] = {
    row["name"]: OptionalParameter(row["name"], row["differs"], is_common_word=row.get("word", False))
    for row in json.loads((Path(__file__).parents[1] / "data" / "optional_parameters.json").read_text("utf-8"))[
        "parameters"
    ]
}


def describe_difference(name: str) -> str:
    """Return a sentence on how a trial without this parameter differs; "" if there is none."""
    return OPTIONAL_PARAMETERS[name].difference if name in OPTIONAL_PARAMETERS else ""


def list_refused_parameters(error: ExchangeError, body_keys: Collection[str]) -> tuple[str, ...]:
    """Return the optional parameters of the request that a refusal names; () if the error is not a refusal.

    An error is a refusal if its code is one of REFUSAL_CODES and its status is 400, 422, unknown or below 300. If the
    error has location fields (`param`, `loc`), only they count, otherwise its message. A message about a place inside
    messages or tools names no parameter, and a parameter that the message suggests does not count.

    Args:
        error: the error of the request.
        body_keys: the top-level keys of the request body.

    Returns:
        The names in the order of OPTIONAL_PARAMETERS.
    """
    if error.code not in REFUSAL_CODES or (
        error.status not in (None, *_REFUSAL_STATUSES) and (error.status or 0) >= 300
    ):
        return ()
    requested_names = [name for name in OPTIONAL_PARAMETERS if name in body_keys]
    error_text = f"{error.message}\n{error.hint}"[:_MAX_READ_CHARACTERS]
    locations = [*error.named, *_iterate_locations(error_text)]
    if locations:
        named_keys = {_normalise_name(_get_first_key(location)) for location in locations}
        return tuple(name for name in requested_names if _normalise_name(name) in named_keys)
    if _NESTED_LOCATION.search(error_text):
        return ()
    text = _SUGGESTION.sub("", error_text)
    return tuple(name for name in requested_names if _is_parameter_named(OPTIONAL_PARAMETERS[name], text))


def _iterate_locations(text: str) -> Iterator[str]:
    """Yield the `loc` values of pydantic errors in a text, as dotted names without `body`."""
    for location_text in _LOCATION.findall(text):
        parts = [part.strip().strip("\"'") for part in location_text.split(",") if part.strip()]
        yield ".".join(part for part in parts if part != "body")


def _get_first_key(location: str) -> str:
    """Return the first key of a path such as `$.tool_choice.type`, `body.seed` or `#/seed`."""
    return re.split(r"[.\[/]", location.removeprefix("$.").removeprefix("body.").lstrip("#/"))[0]


def _normalise_name(name: str) -> str:
    """Return a name without underscores, in lower case, since some vendors write `presencePenalty`."""
    return name.replace("_", "").lower()


def _is_parameter_named(parameter: OptionalParameter, text: str) -> bool:
    """Return whether an error message names the parameter; a common word must be marked as a parameter."""
    name = "_?".join(map(re.escape, parameter.name.split("_")))
    if not parameter.is_common_word:
        return re.search(rf"(?i)(?<![\w.-]){name}(?![\w-])", text) is not None
    patterns = (
        rf"{_QUOTES}{name}{_QUOTES}",
        rf"(?m)(?:^|[\n(\[{{]\s*){name}\s*:",
        rf"\b{_PARAMETER_NOUN}\b(?:\s+supplied)?(?:\s+is|\s+are)?\s*:?\s*{name}\b",
        rf"(?<![\w.-]){name}\s+{_PARAMETER_NOUN}\b",
        rf"(?<![\w.-]){name}\s+(?:is|are)\s+(?:not|un)\w*",
        rf"#/{name}\b",
        rf"\bbody\.{name}\b",
        rf"\bnot\s+support(?:ed|ing)?\s+(?:the\s+)?(?:use\s+of\s+)?{name}\b",
        rf"(?<![\w.-]){name}=",
    )
    return any(re.search(f"(?i){pattern}", text) for pattern in patterns)
