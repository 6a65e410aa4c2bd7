"""A request to the gateway in one form for all dialects, and its answer or error."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol

from toolbench.engine.errors import PlanError
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
        code: stable name, such as `invalid_request`, `rate_limited` or `upstream_failed`.
        message: what happened and what to change.
        retry_after: seconds after which the client may try again; None for no advice.
    """

    def __init__(self, status: int, code: str, message: str, *, retry_after: int | None = None) -> None:
        self.status, self.code, self.message, self.retry_after = status, code, message, retry_after
        super().__init__(message)


def refuse(message: str) -> GatewayError:
    """Return the error of a request that the client has to change."""
    return GatewayError(400, "invalid_request", message)


@dataclass(frozen=True, slots=True)
class GatewayRequest:
    """One request to an alias.

    Attributes:
        alias: the name that stands in `model`.
        messages: the conversation in OpenAI's chat form, system messages included.
        options: parameters of the request, such as `temperature`, in the names of chat completions.
        with_usage: whether a stream ends with the usage.
    """

    alias: str
    messages: tuple[Message, ...]
    tools: ToolRegistry
    tool_choice: RequestChoice
    options: JsonObject
    stream: bool
    with_usage: bool = True


@dataclass(frozen=True, slots=True)
class CleanCall:
    """A call whose arguments match the schema of its tool. `arguments` is JSON of an object."""

    id: str
    name: str
    arguments: str
    value: JsonObject


@dataclass(frozen=True, slots=True)
class GatewayAnswer:
    """The answer of one turn.

    Attributes:
        finish: `stop`, `length` or `tool_calls`.
        path: the method by which the calls came, as in `Turn.path`.
        changes: what was changed between client and upstream.
        requests: exchanges with the upstream, retries included.
    """

    alias: str
    text: str
    calls: tuple[CleanCall, ...]
    finish: str
    usage: Usage | None
    path: str
    changes: tuple[TransformChange, ...] = ()
    requests: int = 1
    id: str = field(default="")

    def list_change_names(self) -> tuple[str, ...]:
        """Return the names of the changes without repeats, in their order."""
        return tuple(dict.fromkeys(change.name for change in self.changes))

    def explain(self) -> JsonObject:
        """Return what was changed, as the body shows it on request."""
        fields = ("kind", "name", "path", "before", "after")
        changes = [{name: getattr(change, name) for name in fields} for change in self.changes]
        return {"path": self.path, "requests": self.requests, "changes": changes}


class Dialect(Protocol):
    """Form in which a client asks and is answered. Modules of `gateway/dialects` implement it."""

    name: str

    def parse(self, body: Any) -> GatewayRequest:
        """Return the request of a decoded body.

        Raises:
            GatewayError: the body is not a request that can be sent on.
        """
        ...

    def render(self, answer: GatewayAnswer, *, explain: bool) -> JsonObject:
        """Return the body of an answer; `explain` adds what was changed."""
        ...

    def render_error(self, error: GatewayError) -> JsonObject:
        """Return the body of an error."""
        ...

    def start_stream(self, answer_id: str, alias: str) -> Iterator[bytes]:
        """Yield the first events of a stream."""
        ...

    def stream_text(self, answer_id: str, alias: str, text: str, *, is_first: bool) -> Iterator[bytes]:
        """Yield the events of a part of the text; `is_first` for the first part."""
        ...

    def end_stream(
        self, request: GatewayRequest, answer: GatewayAnswer, *, has_text: bool, explain: bool
    ) -> Iterator[bytes]:
        """Yield the calls and the end of a stream; `has_text` tells whether text was sent before."""
        ...

    def stream_error(self, error: GatewayError) -> Iterator[bytes]:
        """Yield the events of an error after the stream began."""
        ...


def build_registry(tools: Sequence[tuple[str, str, str]]) -> ToolRegistry:
    """Return the registry of tools given as (name, description, JSON of the schema).

    The registry of the same tools is the same object, so that the engine prepares them once.

    Raises:
        GatewayError: there are too many tools, a name occurs twice, or a schema is not valid.
    """
    if len(tools) > MAX_TOOLS:
        raise refuse(f"There are {len(tools)} tools; at most {MAX_TOOLS} are taken. Send fewer tools.")
    return _build_registry(tuple(tools))


@lru_cache(maxsize=256)
def _build_registry(tools: tuple[tuple[str, str, str], ...]) -> ToolRegistry:
    definitions = []
    for name, description, schema in tools:
        definition = StoredToolDefinition(name, description, json.loads(schema))
        try:
            check_schema(definition)
        except PlanError as error:
            raise refuse(f"Tool {name[:64]}: {error}. Correct its parameters.") from None
        definitions.append(definition)
    names = [definition.name for definition in definitions]
    if len(set(names)) < len(names):
        raise refuse("Two tools have the same name. Give each tool a name of its own.")
    return ToolRegistry(tuple(definitions))
