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

# Members of a request that the caller of the exported code passes.
CALLER_FIELDS = ("messages", "tools", "system", "functions", "input", "instructions")
MAX_LINE_CHARACTERS = 100
NATIVE_METHOD = "native"
CHANGED_SETTING = "Changed for this API: {}."
MESSAGES_PATH = "/v1/messages"


@dataclass(frozen=True, slots=True)
class ExportedSettings:
    """A configuration to export.

    Attributes:
        name: The name of the configuration.
        model: The name of the model in requests.
        base_url: The URL without credentials; it may end with the API prefix.
        api_prefix: The path between the base URL and the paths of the API, without placeholders; "" for none.
        key_env: The name of the environment variable that holds the key.
        wire: The wire format.
        layers: The name and the patch of each policy layer as stored, the weakest first.
        policy_hash: The hash of the policy that the layers give.
        key_header: The header that carries the key; "" for the header of the wire format.
        stream: Whether responses are streamed.
        about: Sentences about the origin of the settings and about their requirements.
    """

    name: str
    model: str
    base_url: str
    api_prefix: str
    key_env: str
    wire: str
    layers: tuple[tuple[str, JsonObject], ...]
    policy_hash: str
    key_header: str = ""
    stream: bool = False
    about: tuple[str, ...] = field(default=())

    @property
    def address(self) -> str:
        """Return the base URL with the API prefix; the prefix is not added if the URL already ends with it."""
        base, prefix = self.base_url.rstrip("/"), self.api_prefix.strip("/")
        return base if not prefix or base.endswith("/" + prefix) else f"{base}/{prefix}"

    @property
    def messages_address(self) -> str:
        """Return the address for the Anthropic SDK and LiteLLM, which append MESSAGES_PATH to it."""
        return self.address.removesuffix("/v1")


def build_chat_settings(exported: ExportedSettings) -> JsonObject:
    """Return the members of a chat completions request, without those in CALLER_FIELDS.

    The members are read from a request that the engine builds with the method native for an example message and tool.
    """
    policy = resolve_policy((*exported.layers, ("export", {"method": NATIVE_METHOD}))).policy
    setup = prepare_turns(
        exported.model, policy, system="", tools=ToolRegistry((_EXAMPLE_TOOL,)), options={}, seed=None
    )
    body: JsonObject = json.loads(build_request(setup, 0, [_EXAMPLE_MESSAGE], has_tools=True).body)
    settings = {name: value for name, value in body.items() if name not in CALLER_FIELDS}
    return settings | ({"stream": True, "stream_options": {"include_usage": True}} if exported.stream else {})


def build_wire_settings(exported: ExportedSettings, wire: str) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the settings converted from chat completions to another wire format.

    Returns:
        The settings, and a line for each change that the wire format needed.
    """
    chat_settings = build_chat_settings(exported)
    chat_body = {**chat_settings, "messages": [_EXAMPLE_MESSAGE], "tools": [_EXAMPLE_TOOL.to_openai()]}
    body, changes = get_wire_format(wire).encode(chat_body)
    settings = {name: value for name, value in body.items() if name not in CALLER_FIELDS}
    return settings, tuple(f"{change.name}: {change.path}" for change in changes)


def build_sdk_keywords(sdk: str, settings: Mapping[str, Any]) -> JsonObject:
    """Return keyword arguments for the SDK's create(), with settings that it has no parameter for in `extra_body`.

    Args:
        sdk: A key of data/sdk_parameters.json.
        settings: The members of a request.
    """
    parameters = read_table("sdk_parameters")[sdk]
    extra_body = {name: value for name, value in settings.items() if name not in parameters}
    keywords = {name: value for name, value in settings.items() if name in parameters}
    return {**keywords, "extra_body": extra_body} if extra_body else keywords


def render_openai(exported: ExportedSettings) -> str:
    """Return Python code for the OpenAI SDK, also if the provider has another wire format.

    The code uses the Responses API if that is the wire format, and otherwise chat completions.
    """
    is_responses = exported.wire == "responses"
    settings, changes = (
        build_wire_settings(exported, "responses") if is_responses else (build_chat_settings(exported), ())
    )
    notes = [CHANGED_SETTING.format(change) for change in changes]
    if exported.wire == "anthropic":
        notes.append("This provider uses the Messages API: use this code with one that serves OpenAI's API.")
    head = _render_head(exported, "the OpenAI SDK", notes)
    method, conversation = ("responses", "input") if is_responses else ("chat.completions", "messages")
    return f"""{head}
import os

from openai import OpenAI

SETTINGS = {_render_python(build_sdk_keywords("responses" if is_responses else "openai", settings))}


def client():
    return OpenAI(base_url={exported.address!r}, api_key=os.environ[{exported.key_env!r}])


def create({conversation}, tools):
    return client().{method}.create({conversation}={conversation}, tools=tools, **SETTINGS)
"""


def render_anthropic(exported: ExportedSettings) -> str:
    """Return Python code for the Anthropic SDK, also if the provider has another wire format."""
    settings, changes = build_wire_settings(exported, "anthropic")
    notes = [CHANGED_SETTING.format(change) for change in changes]
    if exported.wire == "anthropic":
        notes += _list_address_notes(exported)
    else:
        notes.append("This provider uses OpenAI's API: use this code with one that serves the Messages API.")
    head = _render_head(exported, "the Anthropic SDK", notes)
    return f"""{head}
import os

from anthropic import Anthropic

SETTINGS = {_render_python(build_sdk_keywords("anthropic", settings))}


def client():
    return Anthropic(base_url={exported.messages_address!r}, api_key=os.environ[{exported.key_env!r}])


def create(messages, tools):
    return client().messages.create(messages=messages, tools=tools, **SETTINGS)
"""


def render_litellm(exported: ExportedSettings) -> str:
    """Return the YAML configuration of the LiteLLM proxy."""
    keywords = build_sdk_keywords("openai", build_chat_settings(exported))
    is_anthropic = exported.wire == "anthropic"
    endpoint = {
        "model": f"{'anthropic' if is_anthropic else 'openai'}/{keywords.pop('model')}",
        "api_base": exported.messages_address if is_anthropic else exported.address,
        "api_key": f"os.environ/{exported.key_env}",
    }
    config = {"model_list": [{"model_name": exported.model, "litellm_params": endpoint | keywords}]}
    config_text: str = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
    head = _render_head(exported, "the LiteLLM proxy", _list_address_notes(exported) if is_anthropic else ())
    return f"{head}\n{config_text}"


def render_toolbench(exported: ExportedSettings) -> str:
    """Return Python code for Toolbench's engine, with the whole policy."""
    head = _render_head(
        exported, "Toolbench's engine, with all workarounds, limits and fallbacks", has_whole_policy=True
    )
    return f"""{head}
import os

from toolbench.engine.conversation import Conversation
from toolbench.engine.policy.settings import resolve_policy
from toolbench.engine.tools.definitions import ToolRegistry
from toolbench.providers.endpoint import Endpoint

LAYERS = {_render_python([list(layer) for layer in exported.layers])}
ENDPOINT = Endpoint(
    {exported.base_url!r},
    {exported.model!r},
    api_prefix={exported.api_prefix!r},
    key=os.environ.get({exported.key_env!r}, ""),
    key_header={exported.key_header!r},
    wire={exported.wire!r},
)


def conversation(tools=None, system=""):
    policy = resolve_policy([tuple(layer) for layer in LAYERS]).policy
    return Conversation(ENDPOINT.model, tools or ToolRegistry(), policy, system, stream={exported.stream!r})
"""


def render_json(exported: ExportedSettings) -> str:
    """Return all settings as JSON."""
    document = {
        "about": list(exported.about),
        "model": exported.model,
        "base_url": exported.base_url,
        "api_prefix": exported.api_prefix,
        "key_env": exported.key_env,
        "wire": exported.wire,
        "stream": exported.stream,
        "policy_hash": exported.policy_hash,
        "layers": [{"name": name, "patch": patch} for name, patch in exported.layers],
        "policy": build_policy_json(resolve_policy(exported.layers).policy),
        "chat_settings": build_chat_settings(exported),
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


# By the name of the exported file: the name of the format on pages, and the function that renders it.
FORMAT_BY_FILE: dict[str, tuple[str, Callable[[ExportedSettings], str]]] = {
    "openai.py": ("OpenAI SDK", render_openai),
    "anthropic.py": ("Anthropic SDK", render_anthropic),
    "litellm.yaml": ("LiteLLM", render_litellm),
    "python.py": ("Python, Toolbench's engine", render_toolbench),
    "settings.json": ("JSON", render_json),
}
_EXAMPLE_MESSAGE: JsonObject = {"role": "user", "content": "Hello"}
_EXAMPLE_TOOL = ToolDefinition("a_tool", "An example: replace it by a tool of yours.")


def _render_head(
    exported: ExportedSettings, software: str, notes: Sequence[str] = (), *, has_whole_policy: bool = False
) -> str:
    """Return comment lines that describe the export.

    Args:
        exported: The settings.
        software: The software that the export is for.
        notes: Further lines.
        has_whole_policy: Whether the export has the whole policy; if not, lines about the omitted parts are added.
    """
    policy = resolve_policy(exported.layers).policy
    lines = [f"{exported.name}, for {software}.", *exported.about, *notes]
    if not has_whole_policy and policy.method != NATIVE_METHOD:
        lines.append(
            f"It was measured with the method {policy.method}, which needs Toolbench's engine: this code uses native."
        )
    if not has_whole_policy:
        lines.append(
            "Transforms, repairs, limits and fallbacks of the policy need Toolbench's engine: use python.py for them."
        )
    return "\n".join("# " + " ".join(line.split()) for line in lines)


def _list_address_notes(exported: ExportedSettings) -> list[str]:
    """Return one note if software that appends MESSAGES_PATH would not reach the provider's Messages API, else none."""
    if exported.address.endswith("/v1"):
        return []
    return [f"This software appends {MESSAGES_PATH}, but the provider's address is {exported.address}/messages."]


def _render_python(value: object) -> str:
    return pformat(value, width=MAX_LINE_CHARACTERS, sort_dicts=False)
