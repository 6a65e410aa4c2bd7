"""Advice for words of the query bar that look like a filter but are none, such as `model=glm`."""

import re
from collections.abc import Iterator

from toolbench.lab.results.trial_list.query_text import FIELDS, OUTCOME_WORDS, parse_query_text

_QUOTED = re.compile(r'"[^"]*"?')
_LOOKALIKE = re.compile(r"(?<!\S)([A-Za-z_]+)(==?|:|>=|<=|>|<)([^\s\"/]\S*)")
# Field of the query bar, by another word that users may write for it.
_OTHER_NAMES = {
    "time": "ms",
    "latency": "ms",
    "duration": "ms",
    "seconds": "ms",
    "status": "outcome",
    "result": "outcome",
    "error": "cause",
    "reason": "cause",
    "id": "trial",
    "date": "started",
}


def list_query_hints(text: str) -> tuple[str, ...]:
    """Return a sentence for each unknown outcome, and for each word that looks like a filter."""
    query = parse_query_text(text)
    outcome_hints = tuple(
        f"The filter outcome takes one of {', '.join(OUTCOME_WORDS)}."
        for term in query.ignored
        if term.startswith("outcome:")
    )
    return (*outcome_hints, *_iter_word_hints(query.words))


def _iter_word_hints(words: str) -> Iterator[str]:
    """Yield a sentence for each word with an operator that is searched as text, except quoted ones."""
    for name, operator, value in _LOOKALIKE.findall(_QUOTED.sub(" ", words)):
        field = name.lower()
        if field in FIELDS:
            advice = f"write {field}{operator if operator[0] in '<>:' else ':'}{value} to filter"
        elif field in _OTHER_NAMES:
            example = "ms>5000 for more than 5 s" if _OTHER_NAMES[field] == "ms" else f"{_OTHER_NAMES[field]}:"
            advice = f"the filter is {example}"
        else:
            advice = f"there is no filter {name}"
        yield f"“{name}{operator}{value}” is searched as text; {advice}."
