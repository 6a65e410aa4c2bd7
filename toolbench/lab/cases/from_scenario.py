"""Draft of a test case from a built-in scenario: one of its instances as a data row."""

from toolbench.evals import scenarios
from toolbench.evals.types import PUBLISHED_WORDING
from toolbench.evals.user_cases.copying import ScenarioNotCopiedError, copy_scenario
from toolbench.lab.cases.drafts import CaseDraft, build_draft
from toolbench.lab.cases.from_trial import CaseNotCreatedError
from toolbench.lab.scenarios.page import choose_instance

SCENARIO_NOTE = (
    "A copy of the scenario {slug}, version {version}, {wording}. Every trial of the copy uses these texts and values. "
    "Change what you like; the scenario stays as it is."
)


def build_draft_from_scenario(slug: str, seed: str = "", version: str = "") -> tuple[CaseDraft, str]:
    """Return the draft of a new case, and a note about its origin.

    Args:
        slug: a scenario in code.
        seed: the seed of the instance; anything but a number stands for the first wording.
        version: a known version; anything else stands for the newest.

    Raises:
        CaseNotCreatedError: there is no such scenario, or it cannot be written as data.
    """
    if not scenarios.list_versions(slug):
        raise CaseNotCreatedError(f"There is no built-in scenario {slug[:60]}.")
    scenario, instance = choose_instance(slug, seed, version)
    try:
        case = copy_scenario(scenario, instance)
    except ScenarioNotCopiedError as error:
        raise CaseNotCreatedError(str(error)) from None
    wording = "in its first wording" if instance.kind == PUBLISHED_WORDING else f"drawn from seed {instance.seed}"
    note = SCENARIO_NOTE.format(slug=slug, version=instance.version, wording=wording)
    return build_draft(f"Copy of {slug}", case), note
