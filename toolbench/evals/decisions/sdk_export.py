"""Exports of a configuration's settings for other software.

The formats are Python code for the OpenAI and Anthropic SDKs and for Toolbench's engine, LiteLLM's configuration, and
JSON. An export has the name of the environment variable of the key, never the key.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pprint import pformat
from typing import Any

import yaml

from toolbench.engine.loop.turn import build_request
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.policy.settings import build_policy_json, resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.evals.data_files import read_table

CALLER_FIELDS = ("messages", "tools", "system", "functions", "input", "instructions")
LINE_CHARACTERS = 100
NATIVE_METHOD = "native"
CHANGED_SETTING = "Changed for this API: {}."


@dataclass(frozen=True, slots=True)
class ExportedSettings:
    """A configuration to export.

    Attributes:
        name: The name of the configuration.
        model: The name of the model in requests.
        base_url: The URL without credentials; it may end with the API prefix.
        api_prefix: The path between the base URL and the paths of the API; "" for none.
        key_env: The environment variable that has the key.
        wire: The wire format.
        layers: The name and the patch of each policy layer as stored, the weakest first.
        policy_hash: The hash of the policy that the layers give.
        stream: Whether responses are streamed.
        about: Lines about the origin of the settings.
    """

    name: str
    model: str
    base_url: str
    api_prefix: str
    key_env: str
    wire: str
    layers: tuple[tuple[str, JsonObject], ...]
    policy_hash: str
    stream: bool = False
    about: tuple[str, ...] = field(default=())

    @property
    def address(self) -> str:
        """Return the base URL with the API prefix; the prefix is not added if the URL already ends with it."""
        base, prefix = self.base_url.rstrip("/"), self.api_prefix.strip("/")
        return base if not prefix or base.endswith("/" + prefix) else f"{base}/{prefix}"


def build_chat_settings(chosen: ExportedSettings) -> JsonObject:
    """Return the members of a chat completions request, without those in CALLER_FIELDS.

    They are read from a request that the engine builds with the method native for an example message and tool.
    """
    policy = resolve_policy((*chosen.layers, ("export", {"method": NATIVE_METHOD}))).policy
    setup = prepare_turns(chosen.model, policy, system="", tools=ToolRegistry((_EXAMPLE_TOOL,)), options={}, seed=None)
    body: JsonObject = json.loads(build_request(setup, 0, [_EXAMPLE_MESSAGE], has_tools=True).body)
    settings = {name: value for name, value in body.items() if name not in CALLER_FIELDS}
    return settings | ({"stream": True, "stream_options": {"include_usage": True}} if chosen.stream else {})


def build_wire_settings(chosen: ExportedSettings, wire: str) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the settings converted from chat completions to another wire format, and a line for each change."""
    chat_settings = build_chat_settings(chosen)
    chat_body = {**chat_settings, "messages": [_EXAMPLE_MESSAGE], "tools": [_EXAMPLE_TOOL.to_openai()]}
    body, changes = get_wire_format(wire).encode(chat_body)
    settings = {name: value for name, value in body.items() if name not in CALLER_FIELDS}
    return settings, tuple(f"{change.name}: {change.path}" for change in changes)


def build_sdk_keywords(sdk: str, settings: Mapping[str, Any]) -> JsonObject:
    """Return keyword arguments for the SDK's create(); settings without a parameter there are in `extra_body`.

    Args:
        sdk: A key of data/sdk_parameters.json.
        settings: The members of a request.
    """
    parameters = read_table("sdk_parameters")[sdk]
    extra_body = {name: value for name, value in settings.items() if name not in parameters}
    keywords = {name: value for name, value in settings.items() if name in parameters}
    return {**keywords, "extra_body": extra_body} if extra_body else keywords


def render_openai(chosen: ExportedSettings) -> str:
    """Return Python code for the OpenAI SDK: for Responses if that is the wire format, else for chat completions."""
    is_responses = chosen.wire == "responses"
    settings, changes = build_wire_settings(chosen, "responses") if is_responses else (build_chat_settings(chosen), ())
    head = _render_head(chosen, "the OpenAI SDK", [CHANGED_SETTING.format(change) for change in changes])
    method, conversation = ("responses", "input") if is_responses else ("chat.completions", "messages")
    return f"""{head}
import os

from openai import OpenAI

SETTINGS = {_render_python(build_sdk_keywords("responses" if is_responses else "openai", settings))}


def client():
    return OpenAI(base_url={chosen.address!r}, api_key=os.environ[{chosen.key_env!r}])


def create({conversation}, tools):
    return client().{method}.create({conversation}={conversation}, tools=tools, **SETTINGS)
"""


def render_anthropic(chosen: ExportedSettings) -> str:
    """Return Python code for the Anthropic SDK, also if the provider has another wire format."""
    settings, changes = build_wire_settings(chosen, "anthropic")
    notes = [CHANGED_SETTING.format(change) for change in changes]
    if chosen.wire != "anthropic":
        notes.append("This provider's API is OpenAI's: use this code with a provider of the same model with Messages.")
    head = _render_head(chosen, "the Anthropic SDK", notes)
    return f"""{head}
import os

from anthropic import Anthropic

SETTINGS = {_render_python(build_sdk_keywords("anthropic", settings))}


def client():
    return Anthropic(base_url={chosen.base_url!r}, api_key=os.environ[{chosen.key_env!r}])


def create(messages, tools):
    return client().messages.create(messages=messages, tools=tools, **SETTINGS)
"""


def render_litellm(chosen: ExportedSettings) -> str:
    """Return the YAML configuration of the LiteLLM proxy."""
    keywords = build_sdk_keywords("openai", build_chat_settings(chosen))
    vendor = "anthropic" if chosen.wire == "anthropic" else "openai"
    endpoint = {
        "model": f"{vendor}/{keywords.pop('model')}",
        "api_base": chosen.base_url if vendor == "anthropic" else chosen.address,
        "api_key": f"os.environ/{chosen.key_env}",
    }
    config = {"model_list": [{"model_name": chosen.model, "litellm_params": endpoint | keywords}]}
    config_text: str = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    return f"{_render_head(chosen, 'the LiteLLM proxy')}\n{config_text}"


def render_toolbench(chosen: ExportedSettings) -> str:
    """Return Python code for Toolbench's engine, with the whole policy."""
    head = _render_head(chosen, "Toolbench's engine, with all workarounds, limits and fallbacks", has_whole_policy=True)
    return f"""{head}
import os

from toolbench.engine.conversation import Conversation
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.providers.endpoint import Endpoint

LAYERS = {_render_python([list(layer) for layer in chosen.layers])}
ENDPOINT = Endpoint(
    {chosen.base_url!r},
    {chosen.model!r},
    api_prefix={chosen.api_prefix!r},
    key=os.environ.get({chosen.key_env!r}, ""),
    wire={chosen.wire!r},
)


def conversation(tools=None, system=""):
    policy = resolve_policy([tuple(layer) for layer in LAYERS]).policy
    return Conversation(ENDPOINT.model, tools or ToolRegistry(), policy, system, stream={chosen.stream!r})
"""


def render_json(chosen: ExportedSettings) -> str:
    """Return all settings as JSON."""
    document = {
        "about": list(chosen.about),
        "model": chosen.model,
        "base_url": chosen.base_url,
        "api_prefix": chosen.api_prefix,
        "key_env": chosen.key_env,
        "wire": chosen.wire,
        "stream": chosen.stream,
        "policy_hash": chosen.policy_hash,
        "layers": [{"name": name, "patch": patch} for name, patch in chosen.layers],
        "policy": build_policy_json(resolve_policy(chosen.layers).policy),
        "chat_settings": build_chat_settings(chosen),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


RENDERER_BY_FILE: dict[str, tuple[str, Callable[[ExportedSettings], str]]] = {
    "openai.py": ("OpenAI SDK", render_openai),
    "anthropic.py": ("Anthropic SDK", render_anthropic),
    "litellm.yaml": ("LiteLLM", render_litellm),
    "python.py": ("Python, Toolbench's engine", render_toolbench),
    "settings.json": ("JSON", render_json),
}
_EXAMPLE_MESSAGE: JsonObject = {"role": "user", "content": "Hello"}
_EXAMPLE_TOOL = ToolDefinition("a_tool", "Stands for yours.")


def _render_head(
    chosen: ExportedSettings, title: str, notes: Sequence[str] = (), *, has_whole_policy: bool = False
) -> str:
    """Return comment lines that describe the export.

    Args:
        chosen: The settings.
        title: The software that the export is for.
        notes: Further lines.
        has_whole_policy: Whether the export has the whole policy; if not, lines about the omitted parts are added.
    """
    policy = resolve_policy(chosen.layers).policy
    lines = [f"{chosen.name}, for {title}.", *chosen.about, *notes]
    if not has_whole_policy and policy.method != NATIVE_METHOD:
        lines.append(
            f"It was measured with the method {policy.method}, which needs Toolbench's engine: this code uses native."
        )
    if not has_whole_policy:
        lines.append(
            "Transforms, repairs, limits and fallbacks of the policy need Toolbench's engine: use python.py for them."
        )
    return "\n".join("# " + " ".join(line.split()) for line in lines)


def _render_python(value: object) -> str:
    return pformat(value, width=LINE_CHARACTERS, sort_dicts=False)
