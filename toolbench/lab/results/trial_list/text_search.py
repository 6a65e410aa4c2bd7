"""Search by text: words, beginnings of words, and quoted parts."""

import re

from django.contrib.postgres.search import SearchQuery
from django.db.models import CharField, Q, TextField
from django.db.models.lookups import PostgresOperatorLookup

MIN_PART_CHARS = 3  # of a quoted part; the index of trigrams cannot find a shorter one
_QUOTED = re.compile(r'"([^"]*)"?')
_WORD = re.compile(r"[^\W_]+")
_WILDCARD = re.compile(r"([\\%_])")


@CharField.register_lookup
@TextField.register_lookup
class IlikeLookup(PostgresOperatorLookup):
    """Lookup `ilike`, for which PostgreSQL uses the index of trigrams.

    `icontains` compares UPPER(text), for which there is neither an index nor statistics of frequent values.
    """

    lookup_name = "ilike"
    postgres_operator = "ILIKE"


def build_part_condition(column: str, part: str) -> Q:
    """Return the condition that a column contains a text. Case is ignored."""
    escaped = _WILDCARD.sub(r"\\\1", part)
    return Q((f"{column}__ilike", f"%{escaped}%"))


def list_ignored_parts(search: str) -> list[str]:
    """Return the quoted parts that are too short to be searched, or the whole text if nothing of it can be searched."""
    short_parts = [part for part in _QUOTED.findall(search) if 0 < len(part) < MIN_PART_CHARS]
    return short_parts or ([search] if search and not build_search_condition(search) else [])


def build_search_condition(search: str, prefix: str = "search_text__") -> Q:
    """Return the condition that a row's search text contains all words and quoted parts of `search`.

    A word also matches longer words that begin with it. Case is ignored. Quoted parts of fewer than
    MIN_PART_CHARS characters are ignored. Without any other part or word, the condition is empty and all rows match.

    Args:
        search: the words and quoted parts.
        prefix: lookup path from the table of the query to the search texts, with "__" at its end; "" for a query of the
            search texts themselves.
    """
    condition = Q()
    for part in _QUOTED.findall(search):
        if len(part) >= MIN_PART_CHARS:
            condition &= build_part_condition(f"{prefix}text", part)
    if words := dict.fromkeys(_WORD.findall(_QUOTED.sub(" ", search))):
        query = " & ".join(f"{word}:*" for word in words)
        condition &= Q((f"{prefix}words", SearchQuery(query, config="simple", search_type="raw")))
    return condition
