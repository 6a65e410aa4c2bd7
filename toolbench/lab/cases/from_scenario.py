"""Draft of a test case from one instance of a built-in scenario."""

from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.evals.user_cases.copying import ScenarioNotCopiedError, copy_scenario
from toolbench.lab.cases.drafts import CaseDraft, build_draft
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.scenarios.page import choose_instance

SCENARIO_NOTE = (
    "A copy of the scenario {slug}, version {version}, {wording}. Every trial of the copy uses these texts and values. "
    "Your changes do not change the scenario."
)


def build_draft_from_scenario(slug: str, seed: str = "", version: str = "") -> tuple[CaseDraft, str]:
    """Return the draft of a new case, and a note about its origin.

    Args:
        slug: slug of a built-in scenario.
        seed: whole number from 0 to MAX_SEED, the seed of the instance; any other text selects the published wording.
        version: a known version; any other text selects the newest.

    Raises:
        CaseNotCreatedError: there is no such scenario, or it cannot be copied.
    """
    if not scenarios.list_versions(slug):
        raise CaseNotCreatedError(f"There is no built-in scenario {slug[:60]}.")
    scenario, instance = choose_instance(slug, seed, version)
    try:
        case = copy_scenario(scenario, instance)
    except ScenarioNotCopiedError as error:
        raise CaseNotCreatedError(str(error)) from None
    wording = "in its published wording" if instance.kind == PUBLISHED_WORDING else f"drawn from seed {instance.seed}"
    note = SCENARIO_NOTE.format(slug=slug, version=instance.version, wording=wording)
    return build_draft(f"Copy of {slug}", case), note
