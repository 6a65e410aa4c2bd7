import pytest

from tests.factories import make_cell, make_config, make_model, make_provider, make_run, recompute_stale_cells
from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.endpoints.connect import ConnectionSettings, connect_provider
from toolbench.lab.endpoints.simulated import SIMULATED_TEMPLATE
from toolbench.lab.models import (
    Cell,
    Model,
    Preset,
    PriceList,
    Provider,
    PublishedCell,
    PublishedRecommendation,
    SamplingProfile,
)
from toolbench.providers.simulated.personas import load_personas

pytestmark = pytest.mark.django_db


def test_load_builtin_data_creates_models_profiles_and_presets() -> None:
    loaded = load_builtin_data()
    assert Model.objects.filter(provider__template="openrouter").count() == 17
    assert SamplingProfile.objects.count() == loaded.profiles == 16
    assert Preset.objects.count() == loaded.presets
    assert PublishedCell.objects.count() == 29
    assert PublishedRecommendation.objects.exists()
    assert Model.objects.filter(provider__service="simulated").exclude(true_rates={}).count() == loaded.simulated_models
    assert set(Model.objects.filter(provider__kind="local").values_list("provider__service", "canonical")) == {
        ("local-own", "smollm2-135m-instruct"),
        ("local-tools", "smollm2-135m-instruct"),
    }


def test_load_builtin_data_again_keeps_settings_of_user() -> None:
    load_builtin_data()
    Provider.objects.filter(name="Simulated").update(concurrency=3, name="Sandbox")
    user_settings = {"workarounds": ["content_tag_tool_call_fallback"], "canonical": "mine"}
    Model.objects.filter(name="x-ai/grok-4.1-fast").update(**user_settings, tags=[])
    before = Model.objects.count()
    assert load_builtin_data() == load_builtin_data()
    assert Model.objects.count() == before
    assert Provider.objects.get(service="simulated", wire="chat").name == "Sandbox"
    grok = Model.objects.get(name="x-ai/grok-4.1-fast")
    assert {name: getattr(grok, name) for name in user_settings} == user_settings
    assert "grok" in grok.tags
    assert PublishedCell.objects.count() == 29


def test_load_builtin_data_ignores_other_providers_of_a_template() -> None:
    load_builtin_data()
    connect_provider(ConnectionSettings("Mine", "https://openrouter.ai/api", template="openrouter", key="sk-or"))
    connect_provider(ConnectionSettings("Sandbox", "", template=SIMULATED_TEMPLATE))
    load_builtin_data()
    assert Provider.objects.get(name="OpenRouter").models.count() == 17
    assert not Model.objects.filter(provider__name__in=("Mine", "Sandbox")).exists()


def test_load_builtin_data_numbers_a_name_that_a_user_took() -> None:
    load_builtin_data()
    Provider.objects.filter(name="OpenRouter").update(template="vllm")
    Provider.objects.filter(name="Simulated").update(template=SIMULATED_TEMPLATE)
    Provider.objects.filter(name="Local, own template").update(service="")
    loaded = load_builtin_data()
    assert load_builtin_data() == loaded
    new_providers = Provider.objects.filter(name__endswith=" 2").order_by("name")
    assert list(new_providers.values_list("name", "template", "service", "kind")) == [
        ("Local, own template 2", "", "local-own", "local"),
        ("OpenRouter 2", "openrouter", "", "openai"),
        ("Simulated 2", "", "simulated", "simulated"),
    ]
    assert new_providers[1].models.count() == 17


def test_load_builtin_data_marks_models_with_mixed_upstreams() -> None:
    load_builtin_data()
    assert Model.objects.get(name="openai/gpt-5.2:nitro").mixed_upstreams
    assert not Model.objects.get(name="x-ai/grok-4.1-fast").mixed_upstreams


def test_load_builtin_data_creates_personas_per_wire_format() -> None:
    load_builtin_data()
    chat, messages, responses = (
        set(Model.objects.filter(provider__kind="simulated", provider__wire=wire).values_list("name", flat=True))
        for wire in ("chat", "anthropic", "responses")
    )
    chat_only_slugs = {slug for slug, persona in load_personas().items() if persona.wires == ("chat",)}
    assert {"legacy-function-call", "tool-calls-object", "arguments-object", "content-in-parts"} < chat_only_slugs
    assert {name.removeprefix("messages/") for name in messages} == chat - chat_only_slugs
    assert {name.removeprefix("responses/") for name in responses} == chat - chat_only_slugs
    assert not chat & (messages | responses)


@pytest.mark.parametrize("earlier", [{}, {"gpt-4o": [1.0, 1.0]}])
def test_load_builtin_data_marks_cells_with_changed_list_price(earlier: dict[str, list[float]]) -> None:
    load_builtin_data()
    model = make_model("gpt-4o", provider=make_provider("OpenAI", template="openai"))
    other_model = make_model("claude", provider=make_provider("Anthropic", template="anthropic"))
    cell = make_cell(make_config(make_run(), model))
    make_cell(make_config(make_run(), other_model))
    make_cell(make_config(make_run(), model, price={"input": 1.0, "output": 1.0}))
    recompute_stale_cells()
    load_builtin_data()
    assert not Cell.objects.filter(stale=True).exists()

    PriceList.objects.filter(template="openai").update(prices=earlier)
    load_builtin_data()
    assert list(Cell.objects.filter(stale=True)) == [cell]
