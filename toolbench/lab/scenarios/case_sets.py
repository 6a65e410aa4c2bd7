"""Sets of test cases: their list, their selection by words such as "set:3", and their privacy."""

from collections.abc import Iterable, Mapping
from urllib.parse import urlencode

from django.db.models import Count, Q
from django.db.models.functions import Lower

from toolbench.lab.models import Case, CaseSet
from toolbench.lab.query_params import parse_whole_number

SET_PREFIX = "set:"
MIN_CASES_FOR_ONE_TRIAL = 20  # a set with at least this many cases is proposed with 1 trial per case, not 10


class CaseSetNotFoundError(Exception):
    """Raised if a set of test cases does not exist; the message has its number."""


def list_nonempty_sets() -> list[tuple[CaseSet, int]]:
    """Return, with one query, the sets that have cases, each with its number of cases.

    The set of the playground is left out.
    """
    case_count = Count("cases", filter=Q(cases__deleted_at=None))
    sets = CaseSet.objects.exclude(kind=CaseSet.Kind.DRAFT)
    nonempty_sets = sets.annotate(case_count=case_count).filter(case_count__gt=0)
    return [(case_set, case_set.case_count) for case_set in nonempty_sets]


def build_set_word(case_set: CaseSet) -> str:
    """Return the word that selects the set in a list of scenarios, such as "set:3"."""
    return f"{SET_PREFIX}{case_set.pk}"


def expand_set_words(words: Iterable[str]) -> tuple[str, ...]:
    """Replace each word that selects a set by the slugs of the set's cases, and remove repeated words.

    Other words, and words that select an unknown or empty set, stay as they are. The call takes one query if any word
    selects a set, otherwise none.
    """
    words = tuple(words)
    members = _find_members([word for word in words if word.startswith(SET_PREFIX)])
    return tuple(dict.fromkeys(slug for word in words for slug in members.get(word, (word,))))


def find_slugs_by_word(words: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the slugs of the cases that each word of a command names. A word that names no case has no entry.

    A word is `set:` with a set's name or number, or a case's slug. Upper and lower case are equal, and outer white
    space is ignored.
    """
    set_words = {
        f"{SET_PREFIX}{name}".lower(): f"{SET_PREFIX}{set_id}"
        for set_id, name in CaseSet.objects.values_list("pk", "name")
    }
    lower_words = {word: word.strip().lower() for word in words}
    keys = {word: set_words.get(lower_word, lower_word) for word, lower_word in lower_words.items()}
    cases = Case.objects.filter(deleted_at=None).annotate(key=Lower("slug")).filter(key__in=set(keys.values()))
    slugs: dict[str, tuple[str, ...]] = {key: (slug,) for key, slug in cases.values_list("key", "slug")}
    slugs |= _find_members([key for key in keys.values() if key.startswith(SET_PREFIX)])
    return {word: slugs[key] for word, key in keys.items() if key in slugs}


def render_launch_query(case_set: CaseSet, case_count: int) -> str:
    """Render the URL query that fills the launch form with the set and default settings, but no model."""
    fields: list[tuple[str, object]] = [
        ("scenarios", build_set_word(case_set)),
        ("profiles", "default"),
        ("strategies", "production"),
        ("methods", "native"),
        ("trials", 1 if case_count >= MIN_CASES_FOR_ONE_TRIAL else 10),
        ("instance_kind", "parity"),
        ("tool_use_mode", "relaxed"),
        ("tool_failure_policy", "tolerated"),
        ("title", str(case_set)),
    ]
    return urlencode(fields)


def set_privacy(set_id: int, *, public: bool) -> CaseSet:
    """Make a set public or private.

    Raises:
        CaseSetNotFoundError: there is no such set.
    """
    case_set = CaseSet.objects.filter(pk=set_id).first()
    if case_set is None:
        raise CaseSetNotFoundError(f"There is no set {set_id}.")
    case_set.public = public
    case_set.save(update_fields=["public"])
    return case_set


def _find_members(words: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the slugs of each set's cases by the set's word, without sets that have no case."""
    set_ids = {word: parse_whole_number(word.removeprefix(SET_PREFIX)) for word in words}
    known_ids = {set_id for set_id in set_ids.values() if set_id is not None}
    if not known_ids:
        return {}
    slugs: dict[int | None, list[str]] = {}
    rows = Case.objects.filter(set__in=known_ids, deleted_at=None).order_by("pk").values_list("set_id", "slug")
    for set_id, slug in rows:
        slugs.setdefault(set_id, []).append(slug)
    return {word: tuple(slugs[set_id]) for word, set_id in set_ids.items() if set_id in slugs}
