"""Saving, editing, deleting and trying the user's own test cases."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count

from django.db import transaction
from django.db.models.functions import Now
from django.utils.text import slugify

from toolbench.evals.user_cases.definition import UserCase, render_case
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.traces.step_facts import to_column_text

DEFAULT_SET_NAME = "My cases"
MAX_SLUG_CHARS = 44  # characters, so that a number can be appended
SLUG_PREFIX = "own-"  # prefix of the slugs of the user's own cases
ROWS_PER_INSERT = 500  # cases per INSERT


class UnknownCaseError(Exception):
    """Case that does not exist or was deleted."""


@dataclass(frozen=True, slots=True)
class NewCaseOptions:
    """Options of a new case.

    Attributes:
        set: name of its set.
        from_trial: primary key of the trial that it was made from, or None.
        slug: the slug that it has elsewhere; empty for a slug from the title.
    """

    set: str = DEFAULT_SET_NAME
    from_trial: int | None = None
    slug: str = ""


def get_case(slug: str) -> Case:
    """Return the case.

    Raises:
        UnknownCaseError: there is no such case, or it was deleted.
    """
    case = Case.objects.select_related("set").filter(slug=slug, deleted_at=None).first()
    if case is None:
        raise UnknownCaseError(f"There is no case {slug}; it may have been deleted.")
    return case


def add_case(title: str, definition: UserCase, filing: NewCaseOptions = NewCaseOptions()) -> Case:
    """Create a case with its first version, and a private set of that name if there is none."""
    return add_cases([(title, definition, filing)])[0]


def add_cases(new: Sequence[tuple[str, UserCase, NewCaseOptions]]) -> tuple[Case, ...]:
    """Create cases as `add_case` does, all or none. Queries grow only with the number of sets and batches."""
    if not new:
        return ()
    titles = [to_column_text(title, 120) for title, _, _ in new]
    groups = [to_column_text(filing.set, 80).strip() or DEFAULT_SET_NAME for _, _, filing in new]
    with transaction.atomic():
        sets = {name: CaseSet.objects.get_or_create(name=name)[0] for name in dict.fromkeys(groups)}
        slugs = find_free_slugs(
            [case.slug or build_slug(title) for title, (_, _, case) in zip(titles, new, strict=True)]
        )
        cases = Case.objects.bulk_create(
            (
                Case(set=sets[group], title=title, slug=slug, from_trial_id=filing.from_trial)
                for group, title, slug, (_, _, filing) in zip(groups, titles, slugs, new, strict=True)
            ),
            batch_size=ROWS_PER_INSERT,
        )
        versions = (
            CaseVersion(case=case, number=1, definition=render_case(definition))
            for case, (_, definition, _) in zip(cases, new, strict=True)
        )
        CaseVersion.objects.bulk_create(versions, batch_size=ROWS_PER_INSERT)
    return tuple(cases)


def edit_case(slug: str, title: str, definition: UserCase) -> Case:
    """Save the case, with a new version if anything but the title has changed.

    Raises:
        UnknownCaseError: there is no such case, or it was deleted.
    """
    with transaction.atomic():
        case = Case.objects.select_for_update().filter(slug=slug, deleted_at=None).first()
        if case is None:
            raise UnknownCaseError(f"There is no case {slug}; it may have been deleted.")
        case.title = to_column_text(title, 120)
        if case.versions.get(number=case.current).definition != render_case(definition):
            case.current += 1
            CaseVersion.objects.create(case=case, number=case.current, definition=render_case(definition))
        case.save(update_fields=["title", "current"])
    return case


def delete_case(slug: str) -> None:
    """Mark the case as deleted. Its versions are kept for the trials that refer to them."""
    Case.objects.filter(slug=slug, deleted_at=None).update(deleted_at=Now())


def build_run_request(slugs: tuple[str, ...], model: int, trials: int) -> RunRequest:
    """Return the request for trying these cases with native tools.

    Args:
        slugs: the cases.
        trials: trials of each case.
        model: primary key of the model.
    """
    return RunRequest(models=(model,), scenarios=slugs, trials=trials)


def build_slug(title: str) -> str:
    """Return SLUG_PREFIX and the slug of the title."""
    return f"{SLUG_PREFIX}{slugify(title)[:MAX_SLUG_CHARS].strip('-') or 'case'}"


def find_free_slugs(plain: Sequence[str]) -> list[str]:
    """Return each slug, with a number if a case or a cell of a run has it already. One query."""
    shared = _shorten_slug(plain[0]) if len(set(plain)) == 1 else SLUG_PREFIX
    tried = Cell.objects.filter(scenario__startswith=shared).order_by().values_list("scenario")
    taken = {
        slug for (slug,) in Case.objects.filter(slug__startswith=shared).order_by().values_list("slug").union(tried)
    }
    numbers: dict[str, Iterator[int]] = {}
    free = []
    for slug in plain:
        numbered = (f"{_shorten_slug(slug)}-{number}" for number in numbers.setdefault(slug, count(2)))
        free.append(next(candidate for candidate in chain([slug], numbered) if candidate not in taken))
        taken.add(free[-1])
    return free


def _shorten_slug(slug: str) -> str:
    """Return the part of a slug that a number is appended to."""
    return slug[:MAX_SLUG_CHARS].rstrip("-")
