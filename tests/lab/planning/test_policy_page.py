"""The page of effective settings: each setting with its layer, as a launch would freeze it."""

import pytest

from tests.factories import make_config, make_run
from toolbench.lab import builtin_data
from toolbench.lab.cases.drafts import CaseDraft, parse_draft
from toolbench.lab.cases.edit import add_case
from toolbench.lab.models import Model
from toolbench.lab.planning.policy_page import PolicyPage, PolicyQuery, get_policy_page

pytestmark = pytest.mark.django_db
TOOLS = '{"name": "cancel", "description": "", "parameters": {"type": "object", "properties": {}}}'


@pytest.fixture
def deepseek() -> Model:
    builtin_data.load_builtin_data()
    return Model.objects.get(name="deepseek/deepseek-v3.2:nitro")


def read_origins(page: PolicyPage) -> dict[str, set[str]]:
    return {key.name: {origin for _, origin in key.parts} for key in page.keys}


def test_get_policy_page_names_layer_of_each_key(deepseek: Model) -> None:
    page = get_policy_page(
        PolicyQuery(model=deepseek.pk, profile="deepseek_v3_2_local_recommended", scenario="long_arguments_guard")
    )
    found = read_origins(page)
    assert found["max_tool_args_bytes"] == {"scenario"}
    assert found["llm_options_defaults"] == {"profile"}
    assert found["message_transforms"] == {"workaround deepseek_openrouter_compat"}
    assert found["max_turns"] == {"engine"}
    assert not page.errors


def test_get_policy_page_lists_defaults_last(deepseek: Model) -> None:
    usual = [key.is_default for key in get_policy_page(PolicyQuery(model=deepseek.pk)).keys]
    assert usual == sorted(usual)


def test_get_policy_page_raw_omits_workarounds(deepseek: Model) -> None:
    found = read_origins(get_policy_page(PolicyQuery(model=deepseek.pk, strategy="raw")))
    assert found["message_transforms"] == {"engine"}


def test_get_policy_page_of_config_shows_frozen_layers() -> None:
    config = make_config(make_run(), layers=[["infrastructure", {"max_turns": 5}]])
    page = get_policy_page(PolicyQuery(config=config.pk))
    assert read_origins(page)["max_turns"] == {"infrastructure"}
    assert f"run {config.run_id}" in page.title


def test_get_policy_page_of_config_with_unknown_key_shows_its_layers() -> None:
    config = make_config(make_run(), layers=[["engine of 2024", {"max_turn": 5}]])
    page = get_policy_page(PolicyQuery(config=config.pk))
    assert page.layers[0] == ("engine of 2024", '{"max_turn": 5}')
    assert page.keys == ()
    assert page.errors[0].startswith("In engine of 2024: max_turn: ")


def test_get_policy_page_of_test_case_has_its_layer_on_top(deepseek: Model) -> None:
    case = add_case(*parse_draft(CaseDraft(tools=TOOLS, message="Cancel it.", expect='{"name": "cancel"}')))
    page = get_policy_page(PolicyQuery(model=deepseek.pk, scenario=case.slug))
    assert page.errors == ()
    assert read_origins(page)["max_turns"] == {"scenario"}
    assert case.slug in page.scenarios


@pytest.mark.parametrize(
    "query",
    [
        {"model": "999999"},
        {"scenario": "no-such"},
        {"strategy": "no-such"},
        {"profile": "no-such"},
        {"method": "telepathy"},
        {"config": "999999"},
        {"model": "x", "strategy": "\0telepathy"},
    ],
)
def test_get_policy_page_unresolvable_query_has_errors_and_choices(deepseek: Model, query: dict[str, str]) -> None:
    page = get_policy_page(PolicyQuery.from_query(query))
    assert page.errors
    assert page.models


@pytest.mark.parametrize("value", ["9" * 5000, "-1", "x", "٣"])
def test_policy_query_ignores_invalid_ids(value: str) -> None:
    assert PolicyQuery.from_query({"config": value, "model": value}) == PolicyQuery()
