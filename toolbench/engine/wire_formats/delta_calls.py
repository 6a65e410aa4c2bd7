"""Assembly of tool calls from the deltas of a stream, with all known peculiarities of indexes, ids and names."""

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
    """One call so far. Its arguments are parts of text, or one complete value; None before either."""

    place: int
    index: int | None = None
    id: str | int | None = None
    type: str | None = None
    name: str = ""
    value: Any = None
    pieces: list[str] | None = None
    extent: JsonEndFinder = field(default_factory=JsonEndFinder)
    extra: FieldChunks = field(default_factory=dict)
    function_extra: FieldChunks = field(default_factory=dict)

    @property
    def arguments(self) -> Any:
        """The arguments so far."""
        return self.value if self.pieces is None else "".join(self.pieces)

    @property
    def closed(self) -> bool:
        """Whether the arguments are complete, by their brackets."""
        return self.extent.closed if self.pieces else self.value is not None

    @property
    def broken_off(self) -> bool:
        """Whether the arguments began and did not end, also those of a JSON text that contains JSON."""
        return bool(self.pieces) and not self.extent.closed and (self.extent.started or self.extent.quoted)

    @property
    def readable(self) -> bool:
        """Whether the arguments are a JSON value."""
        if not self.closed or self.pieces is None:
            return self.closed
        try:
            return read_json(self.arguments) is not None
        except InvalidJsonError:
            return False

    def has_repeated_name(self, item: JsonObject) -> bool:
        """Return whether a later delta repeats the known name."""
        return get_called_function(item).get("name") == self.name

    def add(self, item: JsonObject) -> str:
        """Add a delta; return the part of the arguments' text in it."""
        function = get_called_function(item)
        given, kind = item.get("id"), item.get("type")
        self.id = given if isinstance(given, str | int) and self.id in (None, "") else self.id
        self.type = kind if isinstance(kind, str) and not self.type else self.type
        name = get_text(function.get("name"))
        self.name = self.name if name == self.name else self.name + name
        _keep_fields(self.extra, item, ("index", "id", "type", "function"))
        _keep_fields(self.function_extra, function, ("name", "arguments"))
        return self._add_arguments(function.get("arguments"))

    def _add_arguments(self, given: Any) -> str:
        if isinstance(given, str):
            self.pieces = [] if self.pieces is None else self.pieces
            self.pieces.append(given)
            self.extent.feed(given)
            return given
        if given is not None and not self.extent.started:
            self.value, self.pieces = given, None
        return ""

    def to_json(self) -> JsonObject:
        """Return the call in OpenAI's format, without fields that did not come."""
        call = {"id": self.id, "type": self.type}
        arguments = self.arguments
        return {
            **{key: value for key, value in call.items() if value is not None},
            "function": {
                "name": self.name,
                **({} if arguments is None else {"arguments": arguments}),
                **{key: merge_chunks(pieces, key) for key, pieces in self.function_extra.items()},
            },
            **{key: merge_chunks(pieces, key) for key, pieces in self.extra.items()},
        }


class CallListAssembler:
    """Assembles the calls of one answer.

    Attributes:
        faults: codes of peculiarities, each once, in the order they were seen.
        lone: whether tool_calls came as an object instead of a list.
    """

    def __init__(self) -> None:
        self.calls: list[CallAssembler] = []
        self.faults: dict[str, None] = {}
        self.lone = False
        self._by_index: dict[int, CallAssembler] = {}
        self._by_id: dict[str | int, CallAssembler] = {}

    def add(self, given: Any) -> Iterator[tuple[CallAssembler, str]]:
        """Add the tool_calls of one delta; yield each of its calls with the part of its arguments."""
        self.lone = self.lone or isinstance(given, dict)
        items = [given] if isinstance(given, dict) else given if isinstance(given, list) else []
        for item in items:
            if isinstance(item, dict):
                call = self._owner(item)
                if call.name and call.has_repeated_name(item):
                    self.faults["stream_name_repeated"] = None
                piece = call.add(item)
                if call.id:
                    self._by_id.setdefault(call.id, call)
                yield call, piece

    def to_json(self) -> list[JsonObject]:
        """Return the calls by index if their indexes are distinct, otherwise in the order they came."""
        indexes = [call.index for call in self.calls if call.index is not None]
        told_apart = len(self.calls) == len(indexes) == len(set(indexes))
        calls = sorted(self.calls, key=lambda call: call.index or 0) if told_apart else self.calls
        return [call.to_json() for call in calls]

    def _owner(self, item: JsonObject) -> CallAssembler:
        """Return the call that a delta belongs to; a new one if it begins one."""
        index, given = item.get("index"), _find_id(item)
        if isinstance(index, bool) or not isinstance(index, int):
            self.faults["stream_index_missing"] = None
            found = self._by_id.get(given) or (self.calls[-1] if self.calls else None)
            return found if found and not _is_next_call(found, item) else self._opened(None)
        found = self._by_index.get(index)
        if found is None:
            return self._opened(index)
        if not _is_next_call(found, item):
            return found
        self.faults["stream_index_reused"] = None
        known = self._by_id.get(given)
        return known if known is not None else self._opened(index)

    def _opened(self, index: int | None) -> CallAssembler:
        call = CallAssembler(len(self.calls), index)
        self.calls.append(call)
        if index is not None:
            self._by_index[index] = call
        return call


def _is_next_call(call: CallAssembler, item: JsonObject) -> bool:
    """Return whether a delta begins the next call instead of continuing `call`.

    It does by an id of its own, or by a name and arguments after complete arguments.
    """
    given = _find_id(item)
    if given and call.id:
        return given != call.id
    function = get_called_function(item)
    if not get_text(function.get("name")):
        return False
    return bool(call.name) and function.get("arguments") not in (None, "") and call.closed


def _keep_fields(extra: FieldChunks, given: JsonObject, known: tuple[str, ...]) -> None:
    for key, value in given.items():
        if key not in known:
            extra.setdefault(key, []).append(value)


def _find_id(item: JsonObject) -> str | int:
    """Return the id of a delta, which may be a number; "" for none."""
    given = item.get("id")
    return given if isinstance(given, str | int) else ""
