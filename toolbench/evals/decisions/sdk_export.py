"""Exports of a configuration's settings for other software.

The formats are Python of the OpenAI and Anthropic SDKs, LiteLLM's configuration, Python of Toolbench's engine, and
JSON. A key is only named by its environment variable.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pprint import pformat
from typing import Any

import yaml

from toolbench.engine.loop.turn import build_request
from toolbench.engine.loop.turn_setup import prepare_turns
from toolbench.engine.policy.settings import policy_to_json, resolve_policy
from toolbench.engine.tools.definitions import ToolDefinition, ToolRegistry
from toolbench.engine.types import JsonObject
from toolbench.engine.wire_formats.registry import get_wire_format
from toolbench.evals.data_files import read_table

CALLER_FIELDS = ("messages", "tools", "system", "functions", "input", "instructions")
LINE_CHARACTERS = 100
NATIVE_METHOD = "native"


@dataclass(frozen=True, slots=True)
class ExportedSettings:
    """A configuration to export.

    Attributes:
        base_url: Without the API prefix and without credentials.
        key_env: The environment variable that has the key.
        wire: The wire format.
        layers: The policy layers as stored, the weakest first.
        about: The origin of the settings, one line each.
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
        """Return the base URL with its prefix, which is never doubled."""
        base, prefix = self.base_url.rstrip("/"), self.api_prefix.strip("/")
        return base if not prefix or base.endswith("/" + prefix) else f"{base}/{prefix}"


def build_chat_settings(chosen: ExportedSettings) -> JsonObject:
    """Return what the engine adds to a chat body beside the conversation and the tools, from a body that it built."""
    policy = resolve_policy((*chosen.layers, ("export", {"method": NATIVE_METHOD}))).policy
    some_tool = ToolRegistry((ToolDefinition("a_tool", "Stands for yours."),))
    setup = prepare_turns(chosen.model, policy, system="", tools=some_tool, options={}, seed=None)
    body: JsonObject = json.loads(build_request(setup, 0, [_EXAMPLE_MESSAGE], with_tools=True).body)
    kept = {name: value for name, value in body.items() if name not in CALLER_FIELDS}
    return kept | ({"stream": True, "stream_options": {"include_usage": True}} if chosen.stream else {})


def build_wire_settings(chosen: ExportedSettings, wire: str) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the settings in another wire format than chat's, and a line for each one that was changed."""
    tool = ToolDefinition("a_tool", "Stands for yours.").to_openai()
    chat_body = {**build_chat_settings(chosen), "messages": [_EXAMPLE_MESSAGE], "tools": [tool]}
    body, changes = get_wire_format(wire).encode(chat_body)
    kept = {name: value for name, value in body.items() if name not in CALLER_FIELDS}
    return kept, tuple(f"{change.name}: {change.path}" for change in changes)


def build_sdk_keywords(sdk: str, settings: Mapping[str, Any]) -> JsonObject:
    """Return keyword arguments of the SDK's create(); settings that it does not name are in `extra_body`."""
    known = read_table("sdk_parameters")[sdk]
    extra = {name: value for name, value in settings.items() if name not in known}
    named = {name: value for name, value in settings.items() if name in known}
    return {**named, "extra_body": extra} if extra else named


def render_openai(chosen: ExportedSettings) -> str:
    """Return Python code for the OpenAI SDK, which asks over the provider's own wire format of OpenAI's two."""
    is_responses = chosen.wire == "responses"
    settings, changes = build_wire_settings(chosen, "responses") if is_responses else (build_chat_settings(chosen), ())
    head = _render_head(chosen, "the OpenAI SDK", [f"Could not travel as asked: {change}." for change in changes])
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
    """Return Python code for the Anthropic SDK."""
    settings, changes = build_wire_settings(chosen, "anthropic")
    noted = [f"Could not travel as asked: {change}." for change in changes]
    if chosen.wire != "anthropic":
        noted.append("This provider speaks OpenAI's shape: what follows is for the same model behind Messages.")
    head = _render_head(chosen, "the Anthropic SDK", noted)
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
    maker = "anthropic" if chosen.wire == "anthropic" else "openai"
    base = chosen.base_url if maker == "anthropic" else chosen.address
    reached = {"model": f"{maker}/{keywords.pop('model')}", "api_base": base, "api_key": f"os.environ/{chosen.key_env}"}
    config = {"model_list": [{"model_name": chosen.model, "litellm_params": reached | keywords}]}
    written: str = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    return f"{_render_head(chosen, 'the LiteLLM proxy')}\n{written}"


def render_toolbench(chosen: ExportedSettings) -> str:
    """Return Python code for Toolbench's engine, with the whole policy."""
    head = _render_head(chosen, "our own engine: workarounds, limits and fallbacks come along", (), whole=True)
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
    whole = {
        "about": list(chosen.about),
        "model": chosen.model,
        "base_url": chosen.base_url,
        "api_prefix": chosen.api_prefix,
        "key_env": chosen.key_env,
        "wire": chosen.wire,
        "stream": chosen.stream,
        "policy_hash": chosen.policy_hash,
        "layers": [{"name": name, "patch": patch} for name, patch in chosen.layers],
        "policy": policy_to_json(resolve_policy(chosen.layers).policy),
        "chat_settings": build_chat_settings(chosen),
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


RENDERER_BY_FILE: dict[str, tuple[str, Callable[[ExportedSettings], str]]] = {
    "openai.py": ("OpenAI SDK", render_openai),
    "anthropic.py": ("Anthropic SDK", render_anthropic),
    "litellm.yaml": ("LiteLLM", render_litellm),
    "python.py": ("Python, our engine", render_toolbench),
    "settings.json": ("JSON", render_json),
}
_EXAMPLE_MESSAGE: JsonObject = {"role": "user", "content": "Hello"}


def _render_head(chosen: ExportedSettings, title: str, notes: Sequence[str] = (), *, whole: bool = False) -> str:
    """Return comment lines that describe the export.

    Args:
        chosen: The settings.
        title: The software that the export is for.
        notes: Further lines.
        whole: Whether the export has the whole policy; if not, the lines say what is left out.
    """
    policy = resolve_policy(chosen.layers).policy
    lines = [f"{chosen.name}, for {title}.", *chosen.about, *notes]
    if not whole and policy.method != NATIVE_METHOD:
        lines.append(f"It was measured with method {policy.method}, which only our engine speaks: this asks natively.")
    if not whole:
        lines.append(
            "Transforms, repairs, limits and fallbacks of the policy live in our engine: take python.py for those."
        )
    return "\n".join("# " + " ".join(line.split()) for line in lines)


def _render_python(value: object) -> str:
    return pformat(value, width=LINE_CHARACTERS, sort_dicts=False)
