"""Filter for trials with bodies, and the sentence about a trial whose bodies a rule of retention removed."""

from django.db.models import Q

from toolbench.lab.date_texts import render_day
from toolbench.lab.models import Trial

WITH_BODIES = Q(bodies_removed_at=None)


def explain_removed_bodies(trial: Trial) -> str:
    """Return when and by which rule the bodies of a trial were removed; "" if they were not."""
    if trial.bodies_removed_at is None:
        return ""
    return (
        f"The bodies were removed on {render_day(trial.bodies_removed_at)} by the rule “{trial.bodies_rule}”. "
        "Verdict, versions and figures are kept, but the trial cannot be re-judged or replayed."
    )
