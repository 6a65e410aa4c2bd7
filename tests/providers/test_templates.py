import json
from pathlib import Path

import pytest

from toolbench.engine.policy import presets
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.providers.endpoint import Endpoint
from toolbench.providers.templates import list_templates_with_key, load_templates, lookup_template

PRESETS = Path(presets.__file__).parents[1] / "data" / "presets.json"


def build_request_url(slug: str) -> str:
    template = lookup_template(slug)
    base_url = template.base_url or "https://name.openai.azure.com"
    endpoint = Endpoint(base_url, "any", template.api_prefix, query=template.query)
    return endpoint.build_url(get_wire_format(template.wire).path)


@pytest.mark.parametrize(
    ("slug", "address"),
    [
        ("openai", "https://api.openai.com/v1/chat/completions"),
        ("openai-responses", "https://api.openai.com/v1/responses"),
        ("anthropic", "https://api.anthropic.com/v1/messages"),
        (
            "azure",
            "https://name.openai.azure.com/openai/deployments/any/chat/completions?api-version=2024-10-21",
        ),
        ("openrouter", "https://openrouter.ai/api/v1/chat/completions"),
        ("fireworks", "https://api.fireworks.ai/inference/v1/chat/completions"),
        ("together", "https://api.together.ai/v1/chat/completions"),
        ("groq", "https://api.groq.com/openai/v1/chat/completions"),
        ("deepseek", "https://api.deepseek.com/chat/completions"),
        ("mistral", "https://api.mistral.ai/v1/chat/completions"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions"),
        ("xai", "https://api.x.ai/v1/chat/completions"),
        ("ollama", "http://127.0.0.1:11434/v1/chat/completions"),
        ("vllm", "http://127.0.0.1:8000/v1/chat/completions"),
        ("sglang", "http://127.0.0.1:30000/v1/chat/completions"),
        ("lm-studio", "http://127.0.0.1:1234/v1/chat/completions"),
        ("llama-cpp", "http://127.0.0.1:8080/v1/chat/completions"),
    ],
)
def test_lookup_template_gives_the_documented_address(slug: str, address: str) -> None:
    assert build_request_url(slug) == address


def test_load_templates_has_the_17_tested_templates() -> None:
    assert len(load_templates()) == 17


def test_load_templates_each_have_a_key_or_a_probe_port() -> None:
    for template in load_templates().values():
        assert bool(template.key_env) == (template.probe_port is None)
        if template.probe_port is not None:
            assert template.base_url.endswith(f":{template.probe_port}")


def test_load_templates_name_existing_presets() -> None:
    known = json.loads(PRESETS.read_text("utf-8"))["presets"]
    assert {template.preset for template in load_templates().values()} <= set(known)


def test_list_templates_with_key_ignores_blank_and_other_variables() -> None:
    found = list_templates_with_key({"GROQ_API_KEY": "secret", "OPENROUTER_API_KEY": " ", "UNRELATED": "x"})
    assert [template.slug for template in found] == ["groq"]
