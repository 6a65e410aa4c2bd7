"""Cases of one's own: saving, editing, deleting, and trying one or a whole set."""

import json
from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models.functions import Now
from django.utils.text import slugify

from toolbench.evals.own.definition import OwnCase, case_text
from toolbench.evals.own.reading import case_of
from toolbench.lab.launching.launching import launch
from toolbench.lab.models import Case, CaseSet, CaseVersion, Cell, Run
from toolbench.lab.planning.run_request import RunRequest
from toolbench.lab.steps.facts import column_text

MINE = "My cases"
MOST_SLUG = 44  # characters, so that a number finds room behind


class NoSuchCase(Exception):
    """There is none, or it was deleted; its text says so."""


@dataclass(frozen=True, slots=True)
class Filing:
    """Where a new case belongs: the set's name, and the trial it was made from."""

    set: str = MINE
    from_trial: int | None = None


def find_case(slug: str) -> Case:
    """Raises NoSuchCase."""
    case = Case.objects.select_related("set").filter(slug=slug, deleted_at=None).first()
    if case is None:
        raise NoSuchCase(f"There is no case {slug}; it may have been deleted.")
    return case


def newest(case: Case) -> OwnCase:
    """What the case says now."""
    return case_of(json.loads(case.versions.get(number=case.current).definition))


def add_case(title: str, told: OwnCase, filing: Filing = Filing()) -> Case:
    """A new case with its first version. A set of that name is made where there is none: private."""
    with transaction.atomic():
        group, _ = CaseSet.objects.get_or_create(name=column_text(filing.set, 80).strip() or MINE)
        title = column_text(title, 120)
        case = Case.objects.create(set=group, title=title, slug=free_slug(title), from_trial_id=filing.from_trial)
        CaseVersion.objects.create(case=case, number=1, definition=case_text(told))
    return case


def edit_case(slug: str, title: str, told: OwnCase) -> Case:
    """A new version where anything but the title has changed; the old ones stay as they are. Raises NoSuchCase."""
    with transaction.atomic():
        case = Case.objects.select_for_update().filter(slug=slug, deleted_at=None).first()
        if case is None:
            raise NoSuchCase(f"There is no case {slug}; it may have been deleted.")
        case.title = column_text(title, 120)
        if case.versions.get(number=case.current).definition != case_text(told):
            case.current += 1
            CaseVersion.objects.create(case=case, number=case.current, definition=case_text(told))
        case.save(update_fields=["title", "current"])
    return case


def delete_case(slug: str) -> None:
    """Hides it. Its versions stay for the trials that name them."""
    Case.objects.filter(slug=slug, deleted_at=None).update(deleted_at=Now())


def request_for(slugs: tuple[str, ...], model: int, trials: int, *, title: str = "") -> RunRequest:
    """What trying these cases asks for: the model as it would be used, with native tools."""
    return RunRequest(title=title, models=(model,), scenarios=slugs, trials=trials)


def try_cases(request: RunRequest, *, owner: AbstractBaseUser | None, confirmed: bool = False) -> Run:
    """A normal launch, with its guards. Raises LaunchRefused and ConfirmationNeeded."""
    return launch(request, owner=owner, confirmed=confirmed)


def free_slug(title: str, prefix: str = "own") -> str:
    """`own-` and the title's letters, with a number where that is taken, also by a run whose case is not here."""
    plain = f"{prefix}-{slugify(title)[:MOST_SLUG].strip('-') or 'case'}"
    taken = {
        *Case.objects.filter(slug__startswith=plain).values_list("slug", flat=True),
        *Cell.objects.filter(scenario__startswith=plain).order_by().values_list("scenario", flat=True).distinct(),
    }
    numbered = (f"{plain}-{number}" for number in range(2, len(taken) + 3))
    return plain if plain not in taken else next(slug for slug in numbered if slug not in taken)
