"""The trials that would tell: a run of exactly those that the decision page names, which the decision then counts.

They are fresh trials of a run of their own, in the same scenarios and with the same settings. Since they were planned
after looking, a leader that has some is to be confirmed (docs/decisions/061-rules-of-a-decision.md)."""

from dataclasses import dataclass

from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction

from toolbench.lab.decisions.decide_page import DecidePage, get_decide_page
from toolbench.lab.decisions.decide_query import DecideQuery
from toolbench.lab.decisions.fresh_trials import MOST_TRIALS, Asked, Unconfirmable, fresh_request
from toolbench.lab.decisions.measured import MORE, Candidate
from toolbench.lab.launching.launching import launch
from toolbench.lab.models import Run, RunConfig


@dataclass(frozen=True, slots=True)
class Offer:
    """`trials` of each of `scenarios`, for each of `labels`."""

    labels: tuple[str, ...]
    trials: int
    scenarios: tuple[str, ...]

    @property
    def total(self) -> int:
        return self.trials * len(self.scenarios) * len(self.labels)


def get_offer(page: DecidePage) -> Offer | None:
    """Return what the button would plan; None where nothing would tell, or where trials are still to come."""
    more, candidates = page.decision.more, _candidates(page)
    if more is None or more.each > MOST_TRIALS or any(one.to_come for one in candidates):
        return None
    return Offer(tuple(one.measured.label for one in candidates), more.each, more.scenarios)


def plan_more(query: DecideQuery, *, owner: AbstractBaseUser | None, agreed: int = 0) -> Run:
    """Launch the missing trials of the decision as it stands now, with a fresh seed.

    Raises:
        Unconfirmable: nothing is missing, or it cannot be tried with the same settings.
        LaunchRefused: the plan cannot be tried.
        ConfirmationNeeded: more paid requests may be sent than without asking, and than were `agreed` to.
    """
    page = get_decide_page(query)
    offer, candidates = get_offer(page), _candidates(page)
    if offer is None:
        raise Unconfirmable("No trials are missing now: the decision has changed, or its trials are still to come.")
    asked = Asked(
        tuple(one.config_id for one in candidates), tuple(one.settings for one in candidates),
        offer.scenarios, offer.trials,
    )  # fmt: skip
    request = fresh_request(asked, title=f"{offer.total} more trials for a decision", purpose=MORE)
    source = RunConfig.objects.values_list("run_id", "run__repeat_of", "run__purpose").get(pk=candidates[0].config_id)
    first = source[1] if source[2] == MORE and source[1] else source[0]
    with transaction.atomic():
        run = launch(request, owner=owner, agreed=agreed)
        Run.objects.filter(pk=run.pk).update(repeat_of=first)
    return run


def _candidates(page: DecidePage) -> tuple[Candidate, ...]:
    wanted = page.decision.more.standings if page.decision.more else ()
    by_key = {row.standing.measured.key: row.candidate for row in page.rows}
    return tuple(by_key[one.measured.key] for one in wanted)
