"""A call of a tool that nobody told the player about, guessed from the words of the question: enough to walk the path
of a case of one's own, and no measure of any model."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.messages import JsonObject
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import schema_errors
from toolbench.providers.simulated.general_knowledge import empty_words
from toolbench.providers.simulated.known_values import known_value
from toolbench.providers.simulated.text_values import (
    ADDRESS,
    CODE,
    DATE,
    MOST_LETTERS,
    NAME,
    NUMBER,
    QUOTED,
    Piece,
    Pieces,
)

DEEPEST = 4  # objects and arrays inside each other
SAME_BEGINNING = 4  # letters that make two words one: cancel, cancels
IDENTIFYING = {"id", "number", "code", "no", "key", "sku", "order", "ticket", "invoice"}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_SAMPLES = {"date": "2026-01-01", "date-time": "2026-01-01T12:00:00Z", "email": "someone@example.com"}
Guesses = Iterator[tuple[Any, Piece | None]]


def rank(tools: Sequence[JsonObject], question: str) -> list[JsonObject]:
    """Those that share most words with the question, in their order; none where no tool shares any."""
    asked = set(_words(question[:MOST_LETTERS]))
    scores = [
        _shared(asked, str(tool["name"]), 2) + _shared(asked, str(tool.get("description") or ""), 1) for tool in tools
    ]
    most = max(scores, default=0)
    return [tool for tool, score in zip(tools, scores, strict=True) if most and score == most]


def guess_arguments(tool: JsonObject, question: str) -> JsonObject:
    """Every required argument, and of the others those that the question names. They fit the schema where a value for
    it was found or could be made."""
    parameters = tool.get("parameters")
    root = parameters if isinstance(parameters, dict) else {}
    return _Guess(root, Pieces.of(question)).arguments(root, 0)


@dataclass(frozen=True, slots=True)
class _Guess:
    """One call's arguments, taken from the pieces of the question one after the other."""

    root: JsonObject
    pieces: Pieces

    def arguments(self, schema: JsonObject, depth: int) -> JsonObject:
        """What is named in the question goes first, so that nothing else takes it."""
        properties = {name: self._resolved(one) for name, one in _members(schema.get("properties"))}
        wanted = schema.get("required")
        required = [name for name in properties if isinstance(wanted, list) and name in wanted]
        told = {}
        for name, one in properties.items():
            if (value := self._first(one, self._named(name, one), None)) is not None:
                told[name] = value
        for name in required:
            if name not in told:
                made = self._loose(name, properties[name], depth)
                told[name] = self._first(properties[name], made, _made(properties[name]))
        return {name: told[name] for name in properties if name in told}

    def _resolved(self, schema: Any) -> JsonObject:
        """A schema of one type: a local reference followed, of several the first that is not null."""
        for _ in range(DEEPEST):
            schema = schema if isinstance(schema, dict) else {}
            choices = schema.get("anyOf") or schema.get("oneOf")
            if isinstance(ref := schema.get("$ref"), str):
                group, _, name = ref.removeprefix("#/").partition("/")
                schema = dict(_members(self.root.get(group))).get(name)
            elif isinstance(choices, list) and choices:
                schema = next((one for one in choices if isinstance(one, dict) and one.get("type") != "null"), {})
            else:
                break
        return schema if isinstance(schema, dict) else {}

    def _first(self, schema: JsonObject, values: Guesses, otherwise: Any) -> Any:
        """The first that fits the schema; its piece is taken."""
        for value, piece in values:
            if self._fits(schema, value):
                if piece is not None:
                    self.pieces.take(piece)
                return value
        return otherwise

    def _fits(self, schema: JsonObject, value: Any) -> bool:
        parameters: JsonObject = {"properties": {"value": schema}}
        parameters |= {name: self.root[name] for name in ("$defs", "definitions") if name in self.root}
        try:
            whole = ToolDefinition("guessed", parameters=parameters)
            return not schema_errors(whole, {"value": value})
        except (ValueError, TypeError):
            return True  # no schema that can be checked

    def _named(self, name: str, schema: JsonObject) -> Guesses:
        """Values that the question names for this argument."""
        kind, word = _kind(schema), _key(name)
        for option in _options(schema):
            if isinstance(option, str) and _says(self.pieces.question, option):
                yield option, self.pieces.of_text(option)
        if kind in ("integer", "number"):
            yield from ((_number(piece.text), piece) for piece in self.pieces.named(word, NUMBER))
        elif kind == "boolean" and (mention := re.search(rf"\b{re.escape(word)}", self.pieces.question, re.IGNORECASE)):
            before = self.pieces.question[: mention.start()].lower().split()[-2:]
            yield not {"not", "no", "without", "never", "don't"} & set(before), None
        elif kind == "string" and not _options(schema):
            yield from ((one.text, one) for one in self.pieces.named(word, QUOTED, ADDRESS, DATE, CODE, NUMBER, NAME))
            for sort in (ADDRESS, DATE):
                if _is_of(sort, name, schema):
                    yield from ((piece.text, piece) for piece in self.pieces.some(sort))

    def _loose(self, name: str, schema: JsonObject, depth: int) -> Guesses:
        """Values that may be meant for this argument, the likeliest first."""
        kind = _kind(schema)
        known = known_value(name, schema, self.pieces.question)
        if known is not None and not self.pieces.is_gone(str(known)):
            yield known, self.pieces.of_text(str(known))
        if depth < DEEPEST and kind == "object":
            yield self.arguments(schema, depth + 1), None
        elif depth < DEEPEST and kind == "array":
            yield from ((value, None) for value in self._lists(name, self._resolved(schema.get("items")), depth + 1))
        elif kind in ("integer", "number"):
            yield from ((_number(piece.text), piece) for piece in self.pieces.some(NUMBER))
        elif kind == "string":
            ids = (CODE, NUMBER) if IDENTIFYING & set(_words(name)) else ()
            yield from ((piece.text, piece) for piece in self.pieces.some(QUOTED, *ids, NAME, CODE, DATE, NUMBER))
            yield self.pieces.question.strip().rstrip(".!?"), None

    def _lists(self, name: str, items: JsonObject, depth: int) -> Iterator[list[Any]]:
        """All that the question has of the items' kind, else one item."""
        if options := _options(items):
            yield [one for one in options if isinstance(one, str) and _says(self.pieces.question, one)] or options[:1]
        sorts = {"string": (QUOTED, NAME, CODE), "integer": (NUMBER,), "number": (NUMBER,)}
        for sort in sorts.get(_kind(items), ()):
            if some := list(self.pieces.some(sort)):
                for piece in some:
                    self.pieces.take(piece)
                yield [_number(one.text) if sort == NUMBER else one.text for one in some]
        yield [self._first(items, self._loose(name, items, depth), _made(items))]


def _members(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _options(schema: JsonObject) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else []


def _kind(schema: JsonObject) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), None)
    return kind if isinstance(kind, str) else "object" if "properties" in schema else "string"


def _is_of(sort: str, name: str, schema: JsonObject) -> bool:
    told = f"{schema.get('format', '')} {name}".lower()
    return any(
        word in told for word in (("mail", "url", "uri", "link") if sort == ADDRESS else ("date", "day", "time"))
    )


def _made(schema: JsonObject) -> Any:
    """A value of the schema's kind where the question has none."""
    examples = schema.get("examples")
    for given in ([schema["default"]] if "default" in schema else [], _options(schema), examples):
        if isinstance(given, list) and given:
            return given[0]
    least = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    number = least + ("exclusiveMinimum" in schema) if isinstance(least, (int, float)) else 1
    made: JsonObject = {
        "integer": number or 1,
        "number": number or 1,
        "boolean": False,
        "array": [],
        "object": {},
        "null": None,
    }
    return made.get(_kind(schema), _SAMPLES.get(str(schema.get("format")), "text"))


def _number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _key(name: str) -> str:
    """The word by which a question would name the argument: `order` of `order_id`."""
    words = _words(name)
    return next((word for word in words if word not in IDENTIFYING - {"order", "ticket", "invoice"}), name.lower())


def _says(question: str, option: str) -> bool:
    words = r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", option.strip()))
    return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", question, re.IGNORECASE) is not None


def _words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _shared(asked: set[str], told: str, weight: int) -> int:
    words = set(_words(told)) - empty_words()
    return weight * sum(any(_alike(word, one) for one in asked - empty_words()) for word in words)


def _alike(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    return first == second or (len(short) >= SAME_BEGINNING and long.startswith(short))
