"""Search of trials by text: words, beginnings of words, and quoted parts."""

import re

from django.contrib.postgres.search import SearchQuery
from django.db.models import Q

MIN_PART_CHARS = 3  # of a quoted part; the index of trigrams cannot find a shorter one
_QUOTED = re.compile(r'"([^"]*)"?')
_WORD = re.compile(r"[^\W_]+")


def build_search_condition(search: str) -> Q:
    """Return the condition that the search text of a trial contains every word and every quoted part of `search`.

    A word also matches longer words that begin with it. Upper and lower case are equal. All trials match a text without
    a word and without a quoted part of MIN_PART_CHARS characters.
    """
    condition = Q()
    for part in _QUOTED.findall(search):
        if len(part) >= MIN_PART_CHARS:
            condition &= Q(search_text__text__icontains=part)
    if words := dict.fromkeys(_WORD.findall(_QUOTED.sub(" ", search))):
        query = " & ".join(f"{word}:*" for word in words)
        condition &= Q(search_text__words=SearchQuery(query, config="simple", search_type="raw"))
    return condition
