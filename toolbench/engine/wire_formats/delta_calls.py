"""Assembly of tool calls from the deltas of a stream, also with missing or repeated indexes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.partial_json import JsonEndFinder
from toolbench.engine.strict_json import get_text, read_json
from toolbench.engine.types import JsonObject, get_called_function
from toolbench.engine.wire_formats.merge_chunks import merge_chunks

FieldChunks = dict[str, list[Any]]


@dataclass(slots=True)
class CallAssembler:
    """Assembler of one call.

    Attributes:
        place: index among the calls of the answer, from 0.
        index: the index that the endpoint sends; None if it sends none.
        value: the arguments, if they were received as a JSON value.
        parts: the parts of the arguments, if they were received as text; None if they were not.
        extra: the other fields of the call, each with the values received.
        function_extra: the other fields of its `function`, in the same form.
    """

    place: int
    index: int | None = None
    id: str | int | None = None
    type: str | None = None
    name: str = ""
    value: Any = None
    parts: list[str] | None = None
    end_finder: JsonEndFinder = field(default_factory=JsonEndFinder)
    extra: FieldChunks = field(default_factory=dict)
    function_extra: FieldChunks = field(default_factory=dict)

    @property
    def arguments(self) -> Any:
        """The arguments so far."""
        return self.value if self.parts is None else "".join(self.parts)

    @property
    def closed(self) -> bool:
        """Whether the arguments are complete, by their brackets."""
        return self.end_finder.closed if self.parts else self.value is not None

    @property
    def is_truncated(self) -> bool:
        """Whether the arguments are an incomplete object, list or string."""
        return bool(self.parts) and not self.end_finder.closed and (self.end_finder.started or self.end_finder.quoted)

    @property
    def is_readable(self) -> bool:
        """Whether the arguments are a JSON value."""
        if not self.closed or self.parts is None:
            return self.closed
        try:
            return read_json(self.arguments) is not None
        except InvalidJsonError:
            return False

    def has_repeated_name(self, item: JsonObject) -> bool:
        """Return whether a delta has exactly the name received so far."""
        return get_called_function(item).get("name") == self.name

    def add(self, item: JsonObject) -> str:
        """Add a delta and return its part of the arguments text; "" if it has none."""
        function = get_called_function(item)
        call_id, call_type = item.get("id"), item.get("type")
        self.id = call_id if isinstance(call_id, str | int) and self.id in (None, "") else self.id
        self.type = call_type if isinstance(call_type, str) and not self.type else self.type
        name = get_text(function.get("name"))
        self.name = self.name if name == self.name else self.name + name
        _keep_fields(self.extra, item, ("index", "id", "type", "function"))
        _keep_fields(self.function_extra, function, ("name", "arguments"))
        return self._add_arguments(function.get("arguments"))

    def _add_arguments(self, arguments: Any) -> str:
        if isinstance(arguments, str):
            self.parts = [] if self.parts is None else self.parts
            self.parts.append(arguments)
            self.end_finder.feed(arguments)
            return arguments
        if arguments is not None and not self.end_finder.started:
            self.value, self.parts = arguments, None
        return ""

    def to_json(self) -> JsonObject:
        """Return the call in OpenAI's format, without fields that were not received."""
        call = {"id": self.id, "type": self.type}
        arguments = self.arguments
        return {
            **{key: value for key, value in call.items() if value is not None},
            "function": {
                "name": self.name,
                **({} if arguments is None else {"arguments": arguments}),
                **{key: merge_chunks(parts, key) for key, parts in self.function_extra.items()},
            },
            **{key: merge_chunks(parts, key) for key, parts in self.extra.items()},
        }


class CallListAssembler:
    """Assembler of the calls of one answer.

    Attributes:
        faults: finding codes of deviations, in the order of their first occurrence; a dict used as an ordered set.
        is_single_object: whether tool_calls came as an object instead of a list.
    """

    def __init__(self) -> None:
        self.calls: list[CallAssembler] = []
        self.faults: dict[str, None] = {}
        self.is_single_object = False
        self._by_index: dict[int, CallAssembler] = {}
        self._by_id: dict[str | int, CallAssembler] = {}

    def add(self, tool_calls: Any) -> Iterator[tuple[CallAssembler, str]]:
        """Add the tool_calls of one delta; yield each of its calls with its new arguments text."""
        self.is_single_object = self.is_single_object or isinstance(tool_calls, dict)
        items = [tool_calls] if isinstance(tool_calls, dict) else tool_calls if isinstance(tool_calls, list) else []
        for item in items:
            if isinstance(item, dict):
                call = self._find_or_open_call(item)
                if call.name and call.has_repeated_name(item):
                    self.faults["stream_name_repeated"] = None
                part = call.add(item)
                if call.id:
                    self._by_id.setdefault(call.id, call)
                yield call, part

    def to_json(self) -> list[JsonObject]:
        """Return the calls by index if their indexes are distinct, otherwise in the order received."""
        indexes = [call.index for call in self.calls if call.index is not None]
        are_indexes_distinct = len(self.calls) == len(indexes) == len(set(indexes))
        calls = sorted(self.calls, key=lambda call: call.index or 0) if are_indexes_distinct else self.calls
        return [call.to_json() for call in calls]

    def _find_or_open_call(self, item: JsonObject) -> CallAssembler:
        """Return the call that a delta continues, or a new one if it begins one."""
        index, call_id = item.get("index"), _find_id(item)
        if isinstance(index, bool) or not isinstance(index, int):
            self.faults["stream_index_missing"] = None
            call = self._by_id.get(call_id) or (self.calls[-1] if self.calls else None)
            return call if call and not _is_next_call(call, item) else self._open_call(None)
        call = self._by_index.get(index)
        if call is None:
            return self._open_call(index)
        if not _is_next_call(call, item):
            return call
        self.faults["stream_index_reused"] = None
        call_with_id = self._by_id.get(call_id)
        return call_with_id if call_with_id is not None else self._open_call(index)

    def _open_call(self, index: int | None) -> CallAssembler:
        call = CallAssembler(len(self.calls), index)
        self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _is_next_call(call: CallAssembler, item: JsonObject) -> bool:
    """Return whether a delta begins the next call instead of continuing `call`.

    It does if its id differs from that of `call`, or if it has a name and arguments after complete arguments.
    """
    call_id = _find_id(item)
    if call_id and call.id:
        return call_id != call.id
    function = get_called_function(item)
    if not get_text(function.get("name")):
        return False
    return bool(call.name) and function.get("arguments") not in (None, "") and call.closed


def _keep_fields(extra: FieldChunks, received: JsonObject, handled_fields: tuple[str, ...]) -> None:
    for key, value in received.items():
        if key not in handled_fields:
            extra.setdefault(key, []).append(value)


def _find_id(item: JsonObject) -> str | int:
    """Return the id of a delta, which may be a number; "" if it has none."""
    call_id = item.get("id")
    return call_id if isinstance(call_id, str | int) else ""
