"""Advice for the query bar: terms that cannot be read, ignored words, and words that look like a term (`model=glm`)."""

import re
from collections.abc import Iterator, Mapping

from toolbench.lab.results.trial_list.query_text import FIELDS, NUMBER_FIELDS, OUTCOME_WORDS, parse_query_text
from toolbench.lab.results.trial_list.text_search import MIN_PART_CHARS, list_ignored_parts

# A word like a term, such as model=glm or model="glm 4", or a text in quotes.
_LOOKALIKE_OR_QUOTED = re.compile(
    r'(?<!\S)(?P<name>[A-Za-z_]+)(?P<operator>[=<>:]+)(?P<value>"[^"]+"?|[^\s"/][^\s"]*)|"[^"]*"?'
)
_SEARCHABLE = f"a search needs a letter or a digit, and in quotes {MIN_PART_CHARS} characters or more."
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
# What a field takes, by field. Of the fields without an entry, those of NUMBER_FIELDS take a number, others a text.
_TAKEN_VALUES: Mapping[str, str] = {
    "outcome": f"one of {', '.join(OUTCOME_WORDS)} after a colon",
    "human": "one of wrong, right, any after a colon",
    "run": "the number of a run after a colon",
    "trial": "the number of a trial after a colon",
    "started": "a time such as started>2h, or a day such as started:2026-11-20",
}

_COMPARED_FIELDS = (*NUMBER_FIELDS, "started")


def list_query_hints(text: str) -> tuple[str, ...]:
    """Return a sentence for each term that cannot be read, each ignored part, and each word that looks like a term."""
    query = parse_query_text(text)
    ignored = (f"“{part}” is ignored: {_SEARCHABLE}" for part in list_ignored_parts(query.words))
    return (*map(_describe_taken_values, query.ignored), *ignored, *_iter_word_hints(query.words))


def _describe_taken_values(term: str) -> str:
    """Return the sentence about a term that cannot be read."""
    (field,) = re.findall(r"^[a-z]+", term)
    if field in NUMBER_FIELDS:
        return f"The filter {field} takes a number, such as {field}>5."
    return f"The filter {field} takes {_TAKEN_VALUES.get(field, f'a text after a colon, such as {field}:text')}."


def _iter_word_hints(words: str) -> Iterator[str]:
    """Yield a sentence for each word with an operator, such as `model=glm`, outside of texts in quotes."""
    for match in _LOOKALIKE_OR_QUOTED.finditer(words):
        name, operator, value = match["name"], match["operator"], match["value"]
        if name is None:
            continue
        field = name.lower()
        if field in FIELDS:
            advice = f"write {field}{_correct_operator(field, operator)}{value} to filter"
        elif field in _OTHER_NAMES:
            example = "ms>5000 for more than 5 s" if _OTHER_NAMES[field] == "ms" else f"{_OTHER_NAMES[field]}:"
            advice = f"the filter is {example}"
        else:
            advice = f"there is no filter {name}"
        yield f"“{name}{operator}{value}” is searched as text; {advice}."


def _correct_operator(field: str, operator: str) -> str:
    """Return the operator of the query bar that is closest to the one that a user wrote after a field."""
    comparison = next((sign for sign in "<>" if sign in operator), "")
    if not comparison or field not in _COMPARED_FIELDS:
        return ":"
    return comparison + "=" * ("=" in operator)
