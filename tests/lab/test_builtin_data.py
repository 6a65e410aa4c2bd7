import pytest

from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.models import Model, Preset, Provider, PublishedCell, PublishedRecommendation, SamplingProfile
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
