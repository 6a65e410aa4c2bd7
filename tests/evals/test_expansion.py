"""The published matrix, counted again from our own tables."""

import pytest

from toolbench.evals import scenarios
from toolbench.evals.catalogue import models, profiles
from toolbench.evals.expansion import pairs
from toolbench.evals.filters import choose
from toolbench.evals.published import snapshots

SEED_FILTER = "default,recommended,conversation,creative,tool_calling"


def expand(words: str, *, enforce: bool = True) -> list[tuple[str, str]]:
    chosen = choose(profiles(), words, names=lambda profile: profile.names)
    found = pairs(models(), chosen, name=lambda model: model.name, default=profiles()[0], enforce=enforce)
    return [(model.name, profile.name) for model, profile in found]


def test_the_published_filter_gives_29_pairs_and_1450_trials() -> None:
    found = expand(SEED_FILTER)
    assert len(found) == 29
    assert len(found) * len(scenarios.select("typical")) * 10 == 1450


def test_the_pairs_are_those_of_the_published_table() -> None:
    assert set(expand(SEED_FILTER)) == {(cell.model, cell.profile) for cell in snapshots()[0].cells}


def test_a_model_without_a_fitting_profile_gets_the_default() -> None:
    found = dict(expand("kimi_k2_5_instant"))
    assert found["moonshotai/kimi-k2.5:nitro"] == "kimi_k2_5_instant"
    assert found["x-ai/grok-4.1-fast"] == "default"


def test_without_applicability_every_profile_goes_with_every_model() -> None:
    assert len(expand("recommended", enforce=False)) == 17 * len(
        choose(profiles(), "recommended", names=lambda profile: profile.names)
    )


@pytest.mark.parametrize(
    ("model", "fits"), [("z-ai/glm-4.7:nitro", True), ("z-ai/glm-4.7", False), ("Z-AI/glm-4.7:nitro", False)]
)
def test_globs_are_exact_in_case(model: str, fits: bool) -> None:
    profile = next(one for one in profiles() if one.name == "glm_4_7_recommended")
    assert profile.applies(model) is fits
