"""Tool calls put together from a stream's deltas, whatever their endpoint makes of indexes, ids and names."""

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
    """One call as far as it came. Arguments are pieces of text, or one value that came whole; None before either."""

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
        return self.value if self.pieces is None else "".join(self.pieces)

    @property
    def closed(self) -> bool:
        """Whether the arguments came whole, by their brackets."""
        return self.extent.closed if self.pieces else self.value is not None

    @property
    def broken_off(self) -> bool:
        """Whether the arguments began and did not end; those of a JSON text that holds JSON, too."""
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
        """Whether a later delta has the name that is known already."""
        return get_called_function(item).get("name") == self.name

    def add(self, item: JsonObject) -> str:
        """Takes a delta in; gives the piece of the arguments' text in it."""
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
        """The call in OpenAI's shape. What was not said is not there."""
        said = {"id": self.id, "type": self.type}
        arguments = self.arguments
        return {
            **{key: value for key, value in said.items() if value is not None},
            "function": {
                "name": self.name,
                **({} if arguments is None else {"arguments": arguments}),
                **{key: merge_chunks(pieces, key) for key, pieces in self.function_extra.items()},
            },
            **{key: merge_chunks(pieces, key) for key, pieces in self.extra.items()},
        }


class CallListAssembler:
    """Collects the calls of one answer. `faults` are the names of what was odd, each once, in the order seen; `lone`
    says that tool_calls came as an object and not as a list."""

    def __init__(self) -> None:
        self.calls: list[CallAssembler] = []
        self.faults: dict[str, None] = {}
        self.lone = False
        self._by_index: dict[int, CallAssembler] = {}
        self._by_id: dict[str | int, CallAssembler] = {}

    def add(self, given: Any) -> Iterator[tuple[CallAssembler, str]]:
        """Takes the tool_calls of one delta; gives each call it speaks of with the piece of its arguments."""
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
        """In the order of their indexes where these tell all calls apart, else in the order of their coming."""
        indexes = [call.index for call in self.calls if call.index is not None]
        told_apart = len(self.calls) == len(indexes) == len(set(indexes))
        calls = sorted(self.calls, key=lambda call: call.index or 0) if told_apart else self.calls
        return [call.to_json() for call in calls]

    def _owner(self, item: JsonObject) -> CallAssembler:
        """The call that a delta speaks of, a new one where it opens one."""
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
    """Whether a delta that would go on with `call` begins the next one: by an id of its own, or by a name and
    arguments where the call's are already whole."""
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
    """Some endpoints count instead of naming; "" for anything that is no id."""
    given = item.get("id")
    return given if isinstance(given, str | int) else ""
