import pytest

from toolbench.lab.builtin_data import load_builtin_data
from toolbench.lab.models import Model, Preset, Provider, PublishedCell, PublishedRecommendation, SamplingProfile
from toolbench.providers.simulated.personas import load_personas

pytestmark = pytest.mark.django_db


def test_everything_that_comes_with_toolbench_is_loaded() -> None:
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


def test_loading_again_changes_nothing_a_person_has_set() -> None:
    load_builtin_data()
    Provider.objects.filter(name="Simulated").update(concurrency=3, name="Sandbox")
    set_here = {"workarounds": ["content_tag_tool_call_fallback"], "canonical": "mine"}
    Model.objects.filter(name="x-ai/grok-4.1-fast").update(**set_here, tags=[])
    before = Model.objects.count()
    assert load_builtin_data() == load_builtin_data()
    assert Model.objects.count() == before
    assert Provider.objects.get(service="simulated", wire="chat").name == "Sandbox"
    grok = Model.objects.get(name="x-ai/grok-4.1-fast")
    assert {name: getattr(grok, name) for name in set_here} == set_here
    assert "grok" in grok.tags
    assert PublishedCell.objects.count() == 29


def test_models_under_mixed_upstreams_and_retired_ones_are_marked() -> None:
    load_builtin_data()
    assert Model.objects.get(name="openai/gpt-5.2:nitro").mixed_upstreams
    assert not Model.objects.get(name="x-ai/grok-4.1-fast").mixed_upstreams


def test_personas_are_loaded_for_every_wire_that_has_their_fault() -> None:
    load_builtin_data()
    chat, messages, responses = (
        set(Model.objects.filter(provider__kind="simulated", provider__wire=wire).values_list("name", flat=True))
        for wire in ("chat", "anthropic", "responses")
    )
    told_in_chat_alone = {slug for slug, persona in load_personas().items() if persona.wires == ("chat",)}
    assert {"legacy-function-call", "tool-calls-object", "arguments-object", "content-in-parts"} < told_in_chat_alone
    assert {name.removeprefix("messages/") for name in messages} == chat - told_in_chat_alone
    assert {name.removeprefix("responses/") for name in responses} == chat - told_in_chat_alone
    assert not chat & (messages | responses)
