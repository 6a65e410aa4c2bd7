"""Request, answer and error of the gateway in one form for all wire formats of clients."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from toolbench.engine.errors import PlanError
from toolbench.engine.sized_cache import SizedCache, estimate_bytes
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.tools.definitions import StoredToolDefinition, ToolRegistry
from toolbench.engine.tools.validation import check_schema
from toolbench.engine.types import JsonObject, Message, TransformChange, Usage

MAX_TOOLS = 128
MAX_BODY_BYTES = 16 << 20


class GatewayError(Exception):
    """Refusal or failure of a request.

    Attributes:
        status: HTTP status of the answer.
        code: stable name, such as `invalid_request`, `gateway_full` or `upstream_failed`.
        message: sentences that say what is wrong and what to do.
        retry_after: seconds after which the client may try again; None to send no header Retry-After.
    """

    def __init__(self, status: int, code: str, message: str, *, retry_after: int | None = None) -> None:
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after
        super().__init__(message)


def refuse(message: str) -> GatewayError:
    """Return the error (status 400) for a request that the client has to change; the caller raises it."""
    return GatewayError(400, "invalid_request", message)


class GatewayTool(NamedTuple):
    """Tool of a request, hashable as the key of a cache. `schema` is the JSON text of its JSON Schema."""

    name: str
    description: str
    schema: str


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """One request to an alias.

    Attributes:
        alias: name of the requested alias: the value of the field `model`.
        messages: the conversation in the form of chat completions, system messages included.
        tools: tools of the request; an empty registry if it has none.
        tool_choice: the choice in the form of chat completions.
        options: parameters of the request, such as `temperature`, by their names in chat completions.
        stream: whether the client wants a stream of events.
        with_usage: whether a stream of chat completions ends with the usage; other wire formats always send it.
        changes: removals of parts of the request for which the engine's messages have no place.
    """

    alias: str
    messages: tuple[Message, ...]
    tools: ToolRegistry
    tool_choice: RequestChoice
    options: JsonObject
    stream: bool
    with_usage: bool = True
    changes: tuple[TransformChange, ...] = ()


@dataclass(frozen=True, slots=True)
class ValidCall:
    """Call whose arguments match the schema of its tool. `arguments` is the JSON text of `value`."""

    id: str
    name: str
    arguments: str
    value: JsonObject


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """Answer to a request.

    Attributes:
        alias: the requested alias.
        text: final text; "" for none.
        calls: calls that the client has to run; () for none.
        finish: `stop`, `length` or `tool_calls`.
        path: the method used, as in `Step.path`.
        usage: tokens and cost of the turns; None if unknown.
        changes: changes to the request and the answer by the dialect, transforms and repairs.
        requests: number of exchanges with the upstream, retries included.
        id: random id; empty until the server sets it.
    """

    alias: str
    text: str
    calls: tuple[ValidCall, ...]
    finish: str
    usage: Usage | None
    path: str
    changes: tuple[TransformChange, ...] = ()
    requests: int = 1
    id: str = ""

    def list_change_names(self) -> tuple[str, ...]:
        """Return the names of the changes, each once, in the order of their first occurrence."""
        return tuple(dict.fromkeys(change.name for change in self.changes))

    def render_changes(self) -> JsonObject:
        """Render the changes for the field `toolbench` of a body, which the client requests by a header."""
        fields = ("kind", "name", "path", "before", "after")
        changes = [{name: getattr(change, name) for name in fields} for change in self.changes]
        return {"path": self.path, "requests": self.requests, "changes": changes}


class Dialect(Protocol):
    """Wire format in which a client sends requests and gets answers.

    A stream consists of the events of `start_stream`, of `stream_text` for each part of the text, and of `end_stream`
    or `stream_error`. `answer_id` is the random id of the answer, `alias` the requested alias.

    Attributes:
        name: name of the wire format in traces: `chat`, `messages` or `responses`.
    """

    name: str

    def parse(self, body: Any) -> GatewayRequest:
        """Parse a decoded JSON body.

        Raises:
            GatewayError: a field is missing, unknown or not valid.
        """
        ...

    def render(self, answer: GatewayAnswer, *, with_changes: bool) -> JsonObject:
        """Return the body of an answer; `with_changes` adds the field `toolbench` with the changes."""
        ...

    def render_error(self, error: GatewayError) -> JsonObject:
        """Return the body of an error."""
        ...

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the first events of a stream, before any text."""
        ...

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield the events of a part of the text; `is_first` says whether this part is the first one."""
        ...

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, with_changes: bool
    ) -> Iterator[bytes]:
        """Yield the calls and the end of a stream; `has_text` says whether parts of the text were sent."""
        ...

    def stream_error(self, error: GatewayError) -> Iterator[bytes]:
        """Yield the events of an error that occurred after the first event was sent."""
        ...


_registries: SizedCache[tuple[GatewayTool, ...], ToolRegistry] = SizedCache(max_entries=256)


def build_registry(tools: Sequence[GatewayTool]) -> ToolRegistry:
    """Return the registry of tools.

    Equal tools get the same registry object from a cache, because the engine caches prepared tools by this object.

    Raises:
        GatewayError: there are too many tools, a name occurs twice, or a schema is not valid.
    """
    if len(tools) > MAX_TOOLS:
        raise refuse(f"There are {len(tools)} tools; at most {MAX_TOOLS} are allowed. Send fewer tools.")
    key = tuple(tools)

    def build() -> tuple[ToolRegistry, int]:
        definitions = _build_definitions(key)
        parameters = [definition.parameters for definition in definitions]
        return ToolRegistry(definitions), estimate_bytes([key, *parameters])

    return _registries.get(key, build)


def _build_definitions(tools: tuple[GatewayTool, ...]) -> tuple[StoredToolDefinition, ...]:
    definitions = []
    for tool in tools:
        definition = StoredToolDefinition(tool.name, tool.description, json.loads(tool.schema))
        try:
            check_schema(definition)
        except PlanError as error:
            raise refuse(f"Tool {tool.name[:64]}: {error}. Correct its parameters.") from None
        definitions.append(definition)
    names = [definition.name for definition in definitions]
    if len(set(names)) < len(names):
        raise refuse("Two tools have the same name. Rename one of them.")
    return tuple(definitions)
