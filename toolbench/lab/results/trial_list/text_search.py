"""The search of trials by text: words, beginnings of words, and quoted parts."""

import re

from django.contrib.postgres.search import SearchQuery
from django.db.models import Q

MIN_PART_CHARS = 3  # of a quoted text: shorter ones have no trigram, so no index could find them
_QUOTED = re.compile(r'"([^"]*)"?')
_WORD = re.compile(r"[^\W_]+")


def build_search_condition(search: str) -> Q:
    """Return the condition that a trial's search text has every word of `search`, and every quoted part as it stands.

    A word also finds longer words that begin so. Letters of both cases are equal. A condition that has neither a word
    nor a quoted part of MIN_PART_CHARS characters selects everything.
    """
    found = Q()
    for part in _QUOTED.findall(search):
        if len(part) >= MIN_PART_CHARS:
            found &= Q(search_text__text__icontains=part)
    if words := dict.fromkeys(_WORD.findall(_QUOTED.sub(" ", search))):
        query = " & ".join(f"{word}:*" for word in words)
        found &= Q(search_text__words=SearchQuery(query, config="simple", search_type="raw"))
    return found
