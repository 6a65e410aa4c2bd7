"""Cases of one's own: saving, editing, deleting, and trying one or a whole set."""

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
MAX_SLUG_CHARS = 44  # characters, so that a number finds room behind
SLUG_PREFIX = "own-"  # slugs of cases of one's own begin with it
ROWS_PER_INSERT = 500  # cases per INSERT


class UnknownCaseError(Exception):
    """There is none, or it was deleted; its text says so."""


@dataclass(frozen=True, slots=True)
class NewCaseOptions:
    """Where a new case belongs: the set's name, the trial it was made from, and the slug it has elsewhere."""

    set: str = DEFAULT_SET_NAME
    from_trial: int | None = None
    slug: str = ""


def get_case(slug: str) -> Case:
    """Raises UnknownCaseError."""
    case = Case.objects.select_related("set").filter(slug=slug, deleted_at=None).first()
    if case is None:
        raise UnknownCaseError(f"There is no case {slug}; it may have been deleted.")
    return case


def add_case(title: str, told: UserCase, filing: NewCaseOptions = NewCaseOptions()) -> Case:
    """A new case with its first version. A set of that name is made where there is none: private."""
    return add_cases([(title, told, filing)])[0]


def add_cases(new: Sequence[tuple[str, UserCase, NewCaseOptions]]) -> tuple[Case, ...]:
    """As `add_case`, all or none; the number of queries does not grow with that of cases of a set but by batches."""
    if not new:
        return ()
    titles = [to_column_text(title, 120) for title, _, _ in new]
    groups = [to_column_text(filing.set, 80).strip() or DEFAULT_SET_NAME for _, _, filing in new]
    with transaction.atomic():
        sets = {name: CaseSet.objects.get_or_create(name=name)[0] for name in dict.fromkeys(groups)}
        slugs = find_free_slugs(
            [told.slug or build_slug(title) for title, (_, _, told) in zip(titles, new, strict=True)]
        )
        cases = Case.objects.bulk_create(
            (
                Case(set=sets[group], title=title, slug=slug, from_trial_id=filing.from_trial)
                for group, title, slug, (_, _, filing) in zip(groups, titles, slugs, new, strict=True)
            ),
            batch_size=ROWS_PER_INSERT,
        )
        versions = (
            CaseVersion(case=case, number=1, definition=render_case(told))
            for case, (_, told, _) in zip(cases, new, strict=True)
        )
        CaseVersion.objects.bulk_create(versions, batch_size=ROWS_PER_INSERT)
    return tuple(cases)


def edit_case(slug: str, title: str, told: UserCase) -> Case:
    """A new version where anything but the title has changed; the old ones stay as they are. Raises
    UnknownCaseError."""
    with transaction.atomic():
        case = Case.objects.select_for_update().filter(slug=slug, deleted_at=None).first()
        if case is None:
            raise UnknownCaseError(f"There is no case {slug}; it may have been deleted.")
        case.title = to_column_text(title, 120)
        if case.versions.get(number=case.current).definition != render_case(told):
            case.current += 1
            CaseVersion.objects.create(case=case, number=case.current, definition=render_case(told))
        case.save(update_fields=["title", "current"])
    return case


def delete_case(slug: str) -> None:
    """Hides it. Its versions stay for the trials that name them."""
    Case.objects.filter(slug=slug, deleted_at=None).update(deleted_at=Now())


def build_run_request(slugs: tuple[str, ...], model: int, trials: int) -> RunRequest:
    """What trying these cases asks for: the model as it would be used, with native tools."""
    return RunRequest(models=(model,), scenarios=slugs, trials=trials)


def build_slug(title: str) -> str:
    """`own-` and the title's letters."""
    return f"{SLUG_PREFIX}{slugify(title)[:MAX_SLUG_CHARS].strip('-') or 'case'}"


def find_free_slugs(plain: Sequence[str]) -> list[str]:
    """Each of them, with a number where it is taken, also by a run whose case is not here. One query."""
    shared = _shorten_slug(plain[0]) if len(set(plain)) == 1 else SLUG_PREFIX
    tried = Cell.objects.filter(scenario__startswith=shared).order_by().values_list("scenario")
    taken = {
        slug for (slug,) in Case.objects.filter(slug__startswith=shared).order_by().values_list("slug").union(tried)
    }
    numbers: dict[str, Iterator[int]] = {}
    free = []
    for slug in plain:
        numbered = (f"{_shorten_slug(slug)}-{number}" for number in numbers.setdefault(slug, count(2)))
        free.append(next(one for one in chain([slug], numbered) if one not in taken))
        taken.add(free[-1])
    return free


def _shorten_slug(slug: str) -> str:
    """What of a slug stands before a number."""
    return slug[:MAX_SLUG_CHARS].rstrip("-")
