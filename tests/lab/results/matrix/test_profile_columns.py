"""Short names of profiles in the grid, and the columns of model × profile."""

import pytest

from toolbench.lab.results.matrix.profile_columns import build_profile_columns, shorten_profiles


def test_short_name_drops_the_name_of_its_own_model_only() -> None:
    names = shorten_profiles(
        [
            ("glm-4.7", "glm_4_7_recommended"),
            ("GLM-4.7:nitro", "glm_4_7_tool_calling"),
            ("glm-4.7-flash", "glm_4_7_recommended"),
            ("glm-4.7", "default"),
        ]
    )
    assert names == {
        ("glm-4.7", "glm_4_7_recommended"): "recommended",
        ("GLM-4.7:nitro", "glm_4_7_tool_calling"): "tool_calling",
        ("glm-4.7-flash", "glm_4_7_recommended"): "glm_4_7_recommended",
        ("glm-4.7", "default"): "default",
    }


def test_profile_keeps_its_name_if_the_model_has_the_short_one() -> None:
    names = shorten_profiles([("glm-4.7", "glm_4_7_recommended"), ("glm-4.7", "recommended")])
    assert set(names.values()) == {"glm_4_7_recommended", "recommended"}


@pytest.mark.parametrize(
    ("model", "profile"),
    [
        ("gemini-2.5-flash", "gemini_2_5_flash_default"),
        ("minimax-m2", "minimax_m2_1_recommended"),
        ("glm-4", "glm_4_7_recommended"),
        ("glm-4.7", "glm_4_7_"),
    ],
)
def test_profile_keeps_its_name_if_the_rest_would_mislead(model: str, profile: str) -> None:
    assert shorten_profiles([(model, profile)]) == {(model, profile): profile}


def test_profile_columns_share_short_names_and_put_the_default_first() -> None:
    names = shorten_profiles(
        [("kimi-k2.5", "kimi_k2_5_fast"), ("glm-4.7", "glm_4_7_fast"), ("glm-4.7", "default"), ("glm-4.7", "a_b")]
    )
    columns = build_profile_columns(names)
    assert [(column.key, column.label, column.title) for column in columns] == [
        ("default", "default", "default"),
        ("a_b", "a_b", "a_b"),
        ("fast", "fast", "glm_4_7_fast, kimi_k2_5_fast"),
    ]
    assert {column.group for column in columns} == {"Sampling profile"}
