"""Assembly of tool calls from the deltas of a stream, also with missing or repeated indexes."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from toolbench.engine.errors import InvalidJsonError
from toolbench.engine.partial_json import JsonEndFinder
from toolbench.engine.strict_json import get_text, read_json
from toolbench.engine.types import JsonObject, get_called_function
from toolbench.engine.wire_formats.merge_chunks import merge_chunks

FieldChunks = dict[str, list[Any]]  # by field, the values received for it, in order


@dataclass(slots=True)
class CallAssembler:
    """Assembler of one call.

    Attributes:
        call_index: index among the calls of the answer, from 0.
        index: the index that the endpoint sends; None if it sends none.
        arguments_value: the arguments, if they were received as a JSON value other than text; None if they were not.
        arguments_chunks: the parts of the arguments, if they were received as text; None if they were not.
        end_finder: finds the end of the arguments received as text.
        other_fields: the other fields of the call, each with the values received.
        other_function_fields: the other fields of its `function`, in the same form.
    """

    call_index: int
    index: int | None = None
    id: str | int | None = None
    type: str | None = None
    name: str = ""
    arguments_value: Any = None
    arguments_chunks: list[str] | None = None
    end_finder: JsonEndFinder = field(default_factory=JsonEndFinder)
    other_fields: FieldChunks = field(default_factory=dict)
    other_function_fields: FieldChunks = field(default_factory=dict)

    @property
    def arguments(self) -> Any:
        """The arguments so far: a text, or another JSON value; None before any."""
        return self.arguments_value if self.arguments_chunks is None else "".join(self.arguments_chunks)

    @property
    def is_closed(self) -> bool:
        """Whether the arguments are complete.

        A text is complete when its object or list has ended. Any other value except null is complete at once.
        """
        return self.end_finder.is_closed if self.arguments_chunks else self.arguments_value is not None

    @property
    def is_truncated(self) -> bool:
        """Whether the arguments are an incomplete object, list or string."""
        finder = self.end_finder
        return bool(self.arguments_chunks) and not finder.is_closed and (finder.has_started or finder.is_in_string)

    @property
    def is_readable(self) -> bool:
        """Whether the arguments are complete and, if they are a text, valid JSON other than null."""
        if not self.is_closed or self.arguments_chunks is None:
            return self.is_closed
        try:
            return read_json(self.arguments) is not None
        except InvalidJsonError:
            return False

    def has_repeated_name(self, delta_call: JsonObject) -> bool:
        """Return whether a delta has exactly the name received so far."""
        return get_called_function(delta_call).get("name") == self.name

    def add_delta(self, delta_call: JsonObject) -> str:
        """Add a delta and return its part of the arguments text; "" if it has none.

        A received name is appended to the name so far, unless both are equal.
        """
        function = get_called_function(delta_call)
        call_id, call_type = delta_call.get("id"), delta_call.get("type")
        self.id = call_id if isinstance(call_id, str | int) and self.id in (None, "") else self.id
        self.type = call_type if isinstance(call_type, str) and not self.type else self.type
        name = get_text(function.get("name"))
        self.name = self.name if name == self.name else self.name + name
        _add_other_fields(self.other_fields, delta_call, ("index", "id", "type", "function"))
        _add_other_fields(self.other_function_fields, function, ("name", "arguments"))
        return self._add_arguments(function.get("arguments"))

    def _add_arguments(self, arguments: Any) -> str:
        """Add received arguments and return them if they are text, else "".

        A value that is neither text nor null replaces the arguments so far, unless they are the text of an object or
        list.
        """
        if isinstance(arguments, str):
            self.arguments_chunks = [] if self.arguments_chunks is None else self.arguments_chunks
            self.arguments_chunks.append(arguments)
            self.end_finder.feed(arguments)
            return arguments
        if arguments is not None and not self.end_finder.has_started:
            self.arguments_value, self.arguments_chunks = arguments, None
        return ""

    def to_json(self) -> JsonObject:
        """Return the call in OpenAI's format, without fields that were not received, but always with a name."""
        call = {"id": self.id, "type": self.type}
        arguments = self.arguments
        return {
            **{key: value for key, value in call.items() if value is not None},
            "function": {
                "name": self.name,
                **({} if arguments is None else {"arguments": arguments}),
                **{key: merge_chunks(chunks, key) for key, chunks in self.other_function_fields.items()},
            },
            **{key: merge_chunks(chunks, key) for key, chunks in self.other_fields.items()},
        }


class CallListAssembler:
    """Assembler of the calls of one answer.

    Attributes:
        calls: the calls, in the order in which they began.
        fault_codes: finding codes of deviations, in the order of their first occurrence; a dict used as an ordered set.
        is_single_object: whether the stream sent `tool_calls` as an object instead of a list.
    """

    def __init__(self) -> None:
        self.calls: list[CallAssembler] = []
        self.fault_codes: dict[str, None] = {}
        self.is_single_object = False
        self._calls_by_index: dict[int, CallAssembler] = {}
        self._calls_by_id: dict[str | int, CallAssembler] = {}
        # By index, the id of the next call, announced by a delta without name and arguments after a complete call.
        self._announced_ids: dict[int | None, str | int] = {}

    def add_deltas(self, tool_calls: Any) -> Iterator[tuple[CallAssembler, str]]:
        """Add the tool_calls of one delta; yield each of its calls with its new arguments text."""
        self.is_single_object = self.is_single_object or isinstance(tool_calls, dict)
        call_list = [tool_calls] if isinstance(tool_calls, dict) else tool_calls
        for delta_call in call_list if isinstance(call_list, list) else ():
            if isinstance(delta_call, dict):
                call = self._find_or_open_call(delta_call)
                if call.name and call.has_repeated_name(delta_call):
                    self.fault_codes["stream_name_repeated"] = None
                if call.id and _find_id(delta_call) not in ("", call.id):
                    self._add_other_id(call, delta_call)
                arguments_chunk = call.add_delta(delta_call)
                if call.id:
                    self._calls_by_id.setdefault(call.id, call)
                yield call, arguments_chunk

    def to_json(self) -> list[JsonObject]:
        """Return the calls in OpenAI's format, in the order of their indexes.

        If indexes are missing or repeated, the calls are in the order in which they began.
        """
        indexes = [call.index for call in self.calls if call.index is not None]
        are_indexes_distinct = len(self.calls) == len(indexes) == len(set(indexes))
        calls = sorted(self.calls, key=lambda call: call.index or 0) if are_indexes_distinct else self.calls
        return [call.to_json() for call in calls]

    def _find_or_open_call(self, delta_call: JsonObject) -> CallAssembler:
        """Return the call that a delta continues, or a new call if the delta begins one."""
        index, call_id = delta_call.get("index"), _find_id(delta_call)
        if isinstance(index, bool) or not isinstance(index, int):
            self.fault_codes["stream_index_missing"] = None
            call = self._calls_by_id.get(call_id) or (self.calls[-1] if self.calls else None)
            return call if call and not self._is_next_call(call, delta_call) else self._open_call(None, call_id)
        call = self._calls_by_index.get(index)
        if call is None:
            return self._open_call(index, call_id)
        call_with_id = self._calls_by_id.get(call_id)
        is_of_other_call = bool(call.id) and call_id != call.id and call_with_id is not None
        if not is_of_other_call and not self._is_next_call(call, delta_call):
            return call
        self.fault_codes["stream_index_reused"] = None
        return call_with_id if call_with_id is not None else self._open_call(index, call_id)

    def _is_next_call(self, call: CallAssembler, delta_call: JsonObject) -> bool:
        """Return whether a delta begins the next call: by its own content, or because its id was announced before."""
        is_announced = call.index in self._announced_ids and not _find_id(delta_call) and not _is_empty(delta_call)
        return is_announced or _is_next_call(call, delta_call)

    def _add_other_id(self, call: CallAssembler, delta_call: JsonObject) -> None:
        """Keep the other id of a delta for the next call if the delta may announce it; else record the deviation."""
        if call.is_closed and _is_empty(delta_call):
            self._announced_ids[call.index] = _find_id(delta_call)
        else:
            self.fault_codes["stream_id_changed"] = None

    def _open_call(self, index: int | None, call_id: str | int) -> CallAssembler:
        """Add a call and return it; later deltas with the index of the call belong to the call.

        A call without an id gets the id that was announced for its index.
        """
        call = CallAssembler(len(self.calls), index, self._announced_ids.pop(index, None))
        call.id = call_id or call.id
        self.calls.append(call)
        if index is not None:
            self._calls_by_index[index] = call
        return call


def _is_next_call(call: CallAssembler, delta_call: JsonObject) -> bool:
    """Return whether a delta begins the next call instead of continuing `call`.

    If both have an id, the delta begins the next call if the ids differ. As some servers give each part of a call a new
    id, a delta without a name whose arguments can continue those of `call` is an exception. If one of them has no id,
    the delta begins the next call if it has a name and arguments while `call` has a name and complete arguments.
    """
    call_id, function = _find_id(delta_call), get_called_function(delta_call)
    name, arguments = get_text(function.get("name")), function.get("arguments")
    if call_id and call.id:
        can_continue = arguments is not None and not (call.is_closed and _begins_arguments(arguments))
        return call_id != call.id and (bool(name) or not can_continue)
    return bool(name and call.name) and arguments not in (None, "") and call.is_closed


def _begins_arguments(arguments: Any) -> bool:
    """Return whether arguments begin those of a call: text that begins an object, or a value that is no text.

    Must not be called with null.
    """
    return not isinstance(arguments, str) or arguments.lstrip().startswith("{")


def _is_empty(delta_call: JsonObject) -> bool:
    """Return whether a delta has neither a name nor arguments."""
    function = get_called_function(delta_call)
    return not get_text(function.get("name")) and function.get("arguments") in (None, "")


def _add_other_fields(chunks_by_field: FieldChunks, received: JsonObject, handled_fields: tuple[str, ...]) -> None:
    for key, value in received.items():
        if key not in handled_fields:
            chunks_by_field.setdefault(key, []).append(value)


def _find_id(delta_call: JsonObject) -> str | int:
    """Return the id of a delta, which may be a number; "" if it has none."""
    call_id = delta_call.get("id")
    return call_id if isinstance(call_id, str | int) else ""
