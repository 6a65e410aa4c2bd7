"""Sets of cases: one word names a set wherever scenarios are chosen; a set is public or private."""

from collections.abc import Iterable, Iterator, Mapping
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.db.models.functions import Lower

from toolbench.lab.models import Case, CaseSet
from toolbench.lab.query_params import parse_whole_number

SET_PREFIX = "set:"
MIN_CASES_FOR_ONE_TRIAL = 20  # cases, from which on one trial of each is proposed


class CaseSetNotFoundError(Exception):
    """There is no such set; the text names it."""


def list_nonempty_sets() -> list[tuple[CaseSet, int]]:
    """Return the sets that hold cases, with their numbers of cases, with one query."""
    counted = CaseSet.objects.annotate(kept=Count("cases", filter=Q(cases__deleted_at=None))).filter(kept__gt=0)
    return [(group, group.kept) for group in counted]


def build_set_word(group: CaseSet) -> str:
    """Return the word that stands for the set where scenarios are chosen."""
    return f"{SET_PREFIX}{group.pk}"


def expand_set_words(words: Iterable[str]) -> tuple[str, ...]:
    """Replace words of sets by the slugs of their cases; every slug stands once. One query if there is a set."""
    unique_words = tuple(words)
    members = _find_members([word for word in unique_words if word.startswith(SET_PREFIX)])
    return tuple(dict.fromkeys(slug for word in unique_words for slug in members.get(word, (word,))))


def find_slugs_by_word(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the slugs of cases that words of a command name, by word; other words are left out.

    A word is `set:` with a set's name or number, or a case's slug. Upper and lower case are the same.
    """
    words_by_name = {word.strip().lower(): word for word in words}
    names = {
        f"{SET_PREFIX}{name}".lower(): f"{SET_PREFIX}{pk}" for pk, name in CaseSet.objects.values_list("pk", "name")
    }
    members = _find_members([names.get(word, word) for word in words_by_name if word.startswith(SET_PREFIX)])
    found = {given: members[key] for word, given in words_by_name.items() if (key := names.get(word, word)) in members}
    named = Case.objects.filter(deleted_at=None).annotate(low=Lower("slug")).filter(low__in=list(words_by_name))
    return found | {words_by_name[low]: (slug,) for low, slug in named.values_list("low", "slug")}


def render_launch_query(group: CaseSet, cases: int) -> str:
    """Render the query of a launch form with the set chosen, defaults elsewhere, and no model."""
    chosen: list[tuple[str, object]] = [
        ("scenarios", build_set_word(group)),
        ("profiles", "default"),
        ("strategies", "production"),
        ("methods", "native"),
        ("trials", 1 if cases >= MIN_CASES_FOR_ONE_TRIAL else 10),
        ("instance_kind", "parity"),
        ("tool_use_mode", "relaxed"),
        ("tool_failure_policy", "tolerated"),
        ("title", str(group)),
    ]
    return urlencode(chosen)


def set_privacy(pk: int, *, public: bool) -> CaseSet:
    """Make a set public or private.

    Raises:
        CaseSetNotFoundError: there is no such set.
    """
    group = CaseSet.objects.filter(pk=pk).first()
    if group is None:
        raise CaseSetNotFoundError(f"There is no set {pk}.")
    group.public = public
    group.save(update_fields=["public"])
    return group


def _find_members(words: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    pks = dict(_parse_set_ids(words))
    if not pks:
        return {}
    slugs: dict[str, list[str]] = {}
    rows = Case.objects.filter(set__in=pks, deleted_at=None).order_by("pk").values_list("set_id", "slug")
    for pk, slug in rows:
        slugs.setdefault(pks[pk], []).append(slug)
    return {word: tuple(members) for word, members in slugs.items()}


def _parse_set_ids(words: Iterable[str]) -> Iterator[tuple[int, str]]:
    for word in words:
        number = parse_whole_number(word.removeprefix(SET_PREFIX))
        if number is not None:
            yield number, word
