"""Checks that the runs and scenarios that a command names exist."""

from django.core.management.base import CommandError

from toolbench.evals import scenarios
from toolbench.evals.name_filter import find_similar_words
from toolbench.lab.models import Case, Run, Trial

REFUSED_EXIT_CODE = 2  # of commands that refuse their arguments; some, such as backup and remote, exit with 1


def check_run_exists(run_id: int | None) -> None:
    """Check that a run exists; None means all runs and passes.

    Raises:
        CommandError: there is no run with this id.
    """
    if run_id is not None and not Run.objects.filter(pk=run_id, deleted_at=None).exists():
        raise CommandError(f"There is no run {run_id}.", returncode=REFUSED_EXIT_CODE)


def check_scenario_exists(slug: str) -> None:
    """Check that a scenario, a test case or a stored trial has this slug.

    Raises:
        CommandError: the slug is unknown; the message names similar slugs, or all scenarios in code if none is similar.
    """
    code_slugs = [scenario.slug for scenario in scenarios.list_scenarios()]
    if slug in code_slugs or Trial.objects.filter(scenario=slug).exists() or Case.objects.filter(slug=slug).exists():
        return
    similar = find_similar_words(slug, (*code_slugs, *Case.objects.values_list("slug", flat=True)))
    available = f"the nearest: {', '.join(similar)}" if similar else f"there are {', '.join(code_slugs)}"
    raise CommandError(f"There is no scenario {slug!r}; {available}.", returncode=REFUSED_EXIT_CODE)
