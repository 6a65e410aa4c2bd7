"""Guess of a tool and its arguments from the words of the question, for tools that have no known task.

It is sufficient to try a user's own test case with a simulated model. It says nothing about real models.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.knowledge.facts import load_stop_words
from toolbench.providers.simulated.knowledge.text_values import (
    ADDRESS,
    CODE,
    DATE,
    MAX_QUESTION_CHARS,
    NAME,
    NUMBER,
    QUOTED,
    QuestionValues,
    TextValue,
)
from toolbench.providers.simulated.knowledge.values import find_known_value

MAX_DEPTH = 4  # of nested objects and arrays
MIN_COMMON_PREFIX_CHARS = 4  # with this prefix in common, words are the same: cancel, cancels
IDENTIFIER_WORDS = {"id", "number", "code", "no", "key", "sku", "order", "ticket", "invoice"}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_SAMPLES = {"date": "2026-01-01", "date-time": "2026-01-01T12:00:00Z", "email": "someone@example.com"}
Guesses = Iterator[tuple[Any, TextValue | None]]


def rank_tools(tools: Sequence[JsonObject], question: str) -> list[JsonObject]:
    """Return the tools that share the most words with the question, in their order.

    Words of a tool's name count twice, words of its description once. The result is empty when no tool shares any word.
    """
    question_words = set(_split_words(question[:MAX_QUESTION_CHARS]))
    scores = [
        _score_shared_words(question_words, str(tool["name"]), 2)
        + _score_shared_words(question_words, str(tool.get("description") or ""), 1)
        for tool in tools
    ]
    most = max(scores, default=0)
    return [tool for tool, score in zip(tools, scores, strict=True) if most and score == most]


def guess_arguments(tool: JsonObject, question: str) -> JsonObject:
    """Return every required argument, and the optional ones that the question names.

    An argument fits its schema where a fitting value was found or could be built.
    """
    parameters = tool.get("parameters")
    root = get_object(parameters)
    return _ArgumentGuesser(root, QuestionValues.from_question(question)).build_arguments(root, 0)


@dataclass(frozen=True, slots=True)
class _ArgumentGuesser:
    """Guesser of one call's arguments; each value in the question is used once."""

    root: JsonObject
    values: QuestionValues

    def build_arguments(self, schema: JsonObject, depth: int) -> JsonObject:
        """Return the arguments of an object schema.

        Arguments that the question names are filled first, so that no other argument uses their values.
        """
        properties = {
            name: self._resolve(property_schema) for name, property_schema in _list_items(schema.get("properties"))
        }
        required_names = schema.get("required")
        required = [name for name in properties if isinstance(required_names, list) and name in required_names]
        arguments = {}
        for name, property_schema in properties.items():
            if (
                value := self._take_first_fitting(property_schema, self._find_named_values(name, property_schema), None)
            ) is not None:
                arguments[name] = value
        for name in required:
            if name not in arguments:
                made = self._find_likely_values(name, properties[name], depth)
                arguments[name] = self._take_first_fitting(properties[name], made, _build_default(properties[name]))
        return {name: arguments[name] for name in properties if name in arguments}

    def _resolve(self, schema: Any) -> JsonObject:
        """Return a schema of one type.

        Local references are followed, and of several choices the first non-null one is used.
        """
        for _ in range(MAX_DEPTH):
            schema = get_object(schema)
            choices = schema.get("anyOf") or schema.get("oneOf")
            if isinstance(ref := schema.get("$ref"), str):
                group, _, name = ref.removeprefix("#/").partition("/")
                schema = dict(_list_items(self.root.get(group))).get(name)
            elif isinstance(choices, list) and choices:
                schema = next(
                    (choice for choice in choices if isinstance(choice, dict) and choice.get("type") != "null"), {}
                )
            else:
                break
        return get_object(schema)

    def _take_first_fitting(self, schema: JsonObject, values: Guesses, otherwise: Any) -> Any:
        """Return the first value that fits the schema and mark its text as used; `otherwise` if none fits."""
        for value, piece in values:
            if self._fits(schema, value):
                if piece is not None:
                    self.values.mark_used(piece)
                return value
        return otherwise

    def _fits(self, schema: JsonObject, value: Any) -> bool:
        parameters: JsonObject = {"properties": {"value": schema}}
        parameters |= {name: self.root[name] for name in ("$defs", "definitions") if name in self.root}
        try:
            whole = ToolDefinition("guessed", parameters=parameters)
            return not list_schema_errors(whole, {"value": value})
        except (ValueError, TypeError):
            return True  # the schema cannot be checked

    def _find_named_values(self, name: str, schema: JsonObject) -> Guesses:
        """Yield values that the question names for this argument."""
        kind, word = _find_type(schema), _find_key_word(name)
        for option in _list_options(schema):
            if isinstance(option, str) and _mentions_option(self.values.question, option):
                yield option, self.values.find_text(option)
        if kind in ("integer", "number"):
            yield from ((_parse_number(piece.text), piece) for piece in self.values.find_near(word, NUMBER))
        elif kind == "boolean" and (mention := re.search(rf"\b{re.escape(word)}", self.values.question, re.IGNORECASE)):
            before = self.values.question[: mention.start()].lower().split()[-2:]
            yield not {"not", "no", "without", "never", "don't"} & set(before), None
        elif kind == "string" and not _list_options(schema):
            yield from (
                (value.text, value) for value in self.values.find_near(word, QUOTED, ADDRESS, DATE, CODE, NUMBER, NAME)
            )
            for sort in (ADDRESS, DATE):
                if _has_sort(sort, name, schema):
                    yield from ((piece.text, piece) for piece in self.values.list_kinds(sort))

    def _find_likely_values(self, name: str, schema: JsonObject, depth: int) -> Guesses:
        """Yield values that may be meant for this argument, the most likely first."""
        kind = _find_type(schema)
        known = find_known_value(name, schema, self.values.question)
        if known is not None and not self.values.is_used(str(known)):
            yield known, self.values.find_text(str(known))
        if depth < MAX_DEPTH and kind == "object":
            yield self.build_arguments(schema, depth + 1), None
        elif depth < MAX_DEPTH and kind == "array":
            yield from (
                (value, None) for value in self._build_lists(name, self._resolve(schema.get("items")), depth + 1)
            )
        elif kind in ("integer", "number"):
            yield from ((_parse_number(piece.text), piece) for piece in self.values.list_kinds(NUMBER))
        elif kind == "string":
            ids = (CODE, NUMBER) if IDENTIFIER_WORDS & set(_split_words(name)) else ()
            yield from ((piece.text, piece) for piece in self.values.list_kinds(QUOTED, *ids, NAME, CODE, DATE, NUMBER))
            yield self.values.question.strip().rstrip(".!?"), None

    def _build_lists(self, name: str, items: JsonObject, depth: int) -> Iterator[list[Any]]:
        """Yield lists of all values in the question of the items' kind, then a list of one item."""
        if options := _list_options(items):
            yield [
                option
                for option in options
                if isinstance(option, str) and _mentions_option(self.values.question, option)
            ] or options[:1]
        sorts = {"string": (QUOTED, NAME, CODE), "integer": (NUMBER,), "number": (NUMBER,)}
        for sort in sorts.get(_find_type(items), ()):
            if values_of_sort := list(self.values.list_kinds(sort)):
                for piece in values_of_sort:
                    self.values.mark_used(piece)
                yield [_parse_number(value.text) if sort == NUMBER else value.text for value in values_of_sort]
        yield [self._take_first_fitting(items, self._find_likely_values(name, items, depth), _build_default(items))]


def _list_items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _list_options(schema: JsonObject) -> list[Any]:
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else []


def _find_type(schema: JsonObject) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((type_name for type_name in kind if type_name != "null"), None)
    return kind if isinstance(kind, str) else "object" if "properties" in schema else "string"


def _has_sort(sort: str, name: str, schema: JsonObject) -> bool:
    hint = f"{schema.get('format', '')} {name}".lower()
    return any(
        word in hint for word in (("mail", "url", "uri", "link") if sort == ADDRESS else ("date", "day", "time"))
    )


def _build_default(schema: JsonObject) -> Any:
    """Return a value of the schema's type for an argument without a value in the question."""
    examples = schema.get("examples")
    for given in ([schema["default"]] if "default" in schema else [], _list_options(schema), examples):
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
    return made.get(_find_type(schema), _SAMPLES.get(str(schema.get("format")), "text"))


def _parse_number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _find_key_word(name: str) -> str:
    """Return the word by which a question would name the argument: `order` for `order_id`."""
    words = _split_words(name)
    return next((word for word in words if word not in IDENTIFIER_WORDS - {"order", "ticket", "invoice"}), name.lower())


def _mentions_option(question: str, option: str) -> bool:
    words = r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", option.strip()))
    return bool(words) and re.search(rf"(?<!\w){words}(?!\w)", question, re.IGNORECASE) is not None


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _score_shared_words(question_words: set[str], tool_text: str, weight: int) -> int:
    words = set(_split_words(tool_text)) - load_stop_words()
    return weight * sum(
        any(_is_similar(word, question_word) for question_word in question_words - load_stop_words()) for word in words
    )


def _is_similar(first: str, second: str) -> bool:
    short, long = sorted((first, second), key=len)
    return first == second or (len(short) >= MIN_COMMON_PREFIX_CHARS and long.startswith(short))
