"""Creation, editing and deletion of user cases, and the request for a run that tries them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from django.utils.text import slugify

from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.lab.cases.bfcl_import import BFCL_CATEGORIES, build_bfcl_set_name
from toolbench.lab.cases.drafts import MAX_TITLE_CHARS
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.traces.step_facts import to_column_text

DEFAULT_SET_NAME = "My cases"
DRAFT_SET_NAME = "Playground (drafts)"
RESERVED_SET_NAMES = frozenset({DRAFT_SET_NAME, *map(build_bfcl_set_name, BFCL_CATEGORIES)})  # not for users' cases
MAX_SLUG_CHARS = 44  # characters kept of a title in its slug, and of a slug before a number is appended
SLUG_PREFIX = "own-"  # of the slugs of user cases
ROWS_PER_INSERT = 500  # cases per INSERT
_SLUG_LOCK_ID = 7_204_331  # key of the advisory lock under which free slugs are found and used


class UnknownCaseError(ObjectDoesNotExist):
    """Raised if there is no such test case, version or trial, or the case is of another kind; see the message."""


@dataclass(frozen=True, slots=True)
class NewCaseOptions:
    """Options of a new case.

    Attributes:
        set: name of its set.
        kind: kind of its set.
        from_trial: primary key of the trial that it was made from, or None.
        slug: the preferred slug; empty for a slug from the title. A number is appended if the slug is taken.
    """

    set: str = DEFAULT_SET_NAME
    kind: CaseSet.Kind = CaseSet.Kind.OWN
    from_trial: int | None = None
    slug: str = ""


def get_case(slug: str) -> Case:
    """Return the test case with this slug and its set, with one query.

    Raises:
        UnknownCaseError: there is no such case, or it was deleted.
    """
    case = Case.objects.select_related("set").filter(slug=slug, deleted_at=None).first()
    if case is None:
        raise UnknownCaseError(f"There is no test case {slug}; it may have been deleted.")
    return case


def add_case(title: str, definition: UserCase, options: NewCaseOptions = NewCaseOptions()) -> Case:
    """Create a case with its first version; create a private set for it if there is none of that name.

    Raises:
        InvalidFieldsError: as in `add_cases`.
    """
    return add_cases([(title, definition, options)])[0]


def add_cases(new_cases: Sequence[tuple[str, UserCase, NewCaseOptions]]) -> tuple[Case, ...]:
    """Create cases as `add_case` does, all or none.

    The number of queries depends only on the numbers of sets and of batches.

    Args:
        new_cases: title, definition and options of each case.

    Raises:
        InvalidFieldsError: a set of the given name has another kind, or the name is reserved for sets of another kind.
    """
    if not new_cases:
        return ()
    titles = [to_column_text(title, MAX_TITLE_CHARS) for title, _, _ in new_cases]
    set_names = [to_column_text(options.set, 80).strip() or DEFAULT_SET_NAME for _, _, options in new_cases]
    with transaction.atomic():
        _lock_slugs()
        kinds = {name: options.kind for name, (_, _, options) in zip(set_names, new_cases, strict=True)}
        sets = {name: _get_or_create_set(name, kind) for name, kind in kinds.items()}
        slugs = [options.slug or build_slug(title) for title, (_, _, options) in zip(titles, new_cases, strict=True)]
        trial_ids = [options.from_trial for _, _, options in new_cases]
        cases = _insert_cases([sets[name] for name in set_names], titles, slugs, trial_ids)
        versions = (
            CaseVersion(case=case, number=1, definition=render_case(definition))
            for case, (_, definition, _) in zip(cases, new_cases, strict=True)
        )
        CaseVersion.objects.bulk_create(versions, batch_size=ROWS_PER_INSERT)
    return tuple(cases)


def _insert_cases(
    sets: Sequence[CaseSet], titles: Sequence[str], preferred_slugs: Sequence[str], trial_ids: Sequence[int | None]
) -> list[Case]:
    """Insert cases with free slugs and return them in the same order.

    Call it in the transaction that holds the lock of slugs. An import of a bundle does not acquire this lock; if it
    takes one of the slugs meanwhile, free slugs are found again.
    """
    while True:
        slugs = find_free_slugs(preferred_slugs)
        cases = [
            Case(set=case_set, title=title, slug=slug, from_trial_id=trial_id)
            for case_set, title, slug, trial_id in zip(sets, titles, slugs, trial_ids, strict=True)
        ]
        try:
            with transaction.atomic():
                return Case.objects.bulk_create(cases, batch_size=ROWS_PER_INSERT)
        except IntegrityError:
            if not Case.objects.filter(slug__in=slugs).exists():
                raise


def _lock_slugs() -> None:
    """Acquire the advisory lock of slugs until the transaction ends, so that users' new cases get different slugs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_SLUG_LOCK_ID])


def _get_or_create_set(name: str, kind: CaseSet.Kind) -> CaseSet:
    case_set, _ = CaseSet.objects.get_or_create(name=name, defaults={"kind": kind})
    if case_set.kind != kind or (kind == CaseSet.Kind.OWN and name in RESERVED_SET_NAMES):
        message = f"The set “{name}” is for test cases of another kind. Enter the name of another set."
        raise InvalidFieldsError({"set": [message]})
    return case_set


def edit_case(slug: str, title: str, definition: UserCase, read_number: int | None = None) -> Case:
    """Save the case, with a new version if anything but the title has changed.

    Args:
        slug: slug of the case.
        title: its new title.
        definition: its new definition.
        read_number: number of the version that the user has read and changed; None to replace any version.

    Raises:
        UnknownCaseError: there is no such case, or it was deleted.
        InvalidFieldsError: the definition differs, and another version than `read_number` is the newest now.
    """
    with transaction.atomic():
        rows = Case.objects.select_for_update(of=("self",)).select_related("set")
        case = rows.filter(slug=slug, deleted_at=None).first()
        if case is None:
            raise UnknownCaseError(f"There is no test case {slug}; it may have been deleted.")
        case.title = to_column_text(title, MAX_TITLE_CHARS)
        if case.versions.get(number=case.current).definition != render_case(definition):
            if read_number not in (None, case.current):
                message = f"Version {case.current} was saved meanwhile. Your input is kept: compare, then save again."
                raise InvalidFieldsError({"read_number": [message]})
            case.current += 1
            CaseVersion.objects.create(case=case, number=case.current, definition=render_case(definition))
        case.save(update_fields=["title", "current"])
    return case


def delete_case(slug: str) -> None:
    """Mark the case as deleted. Its versions are kept for the trials that refer to them."""
    Case.objects.filter(slug=slug, deleted_at=None).update(deleted_at=Now())


def build_run_request(slugs: tuple[str, ...], model: int, trials: int) -> RunRequest:
    """Return the request for a run of these cases with native tools.

    Args:
        slugs: slugs of the cases.
        model: primary key of the model.
        trials: number of trials of each case.
    """
    return RunRequest(models=(model,), scenarios=slugs, trials=trials)


def build_slug(title: str) -> str:
    """Return a slug such as `own-weather-in-lisbon`; `own-case` for a title without ASCII letters and digits."""
    return f"{SLUG_PREFIX}{slugify(title)[:MAX_SLUG_CHARS].strip('-') or 'case'}"


def find_free_slugs(preferred_slugs: Sequence[str]) -> list[str]:
    """Return a free slug for each preferred slug, in the same order, with one query.

    A number is appended, from 2, to a slug that a case or cell has or that was returned for an earlier preferred slug.
    Cells count, so that a new case never shows the trials of another one.

    Args:
        preferred_slugs: if they are not all equal, each must begin with SLUG_PREFIX.
    """
    prefix = _shorten_slug(preferred_slugs[0]) if len(set(preferred_slugs)) == 1 else SLUG_PREFIX
    cell_slugs = Cell.objects.filter(scenario__startswith=prefix).order_by().values_list("scenario")
    case_slugs = Case.objects.filter(slug__startswith=prefix).order_by().values_list("slug")
    taken_slugs = {slug for (slug,) in case_slugs.union(cell_slugs)}
    numbers: dict[str, Iterator[int]] = {}
    free_slugs = []
    for slug in preferred_slugs:
        numbered = (f"{_shorten_slug(slug)}-{number}" for number in numbers.setdefault(slug, count(2)))
        free_slugs.append(next(candidate for candidate in chain([slug], numbered) if candidate not in taken_slugs))
        taken_slugs.add(free_slugs[-1])
    return free_slugs


def _shorten_slug(slug: str) -> str:
    """Return the part of a slug to which a number is appended."""
    return slug[:MAX_SLUG_CHARS].rstrip("-")
