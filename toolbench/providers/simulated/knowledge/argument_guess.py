"""Guess of a tool and its arguments from the words of a question, for tools without a known task.

With it, users can try their own test cases with a simulated model. The guesses say nothing about real models.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.strict_json import get_object
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.tools.validation import list_schema_errors
from toolbench.engine.types import JsonObject
from toolbench.providers.simulated.knowledge.plain_answers import load_stop_words
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

MAX_DEPTH = 4  # of nested objects and arrays; also the number of references and choices that are followed
MIN_STEM_CHARS = 4  # a word of this length or more is similar to longer words that begin with it: cancel, cancels
IDENTIFIER_WORDS = {"id", "number", "code", "no", "key", "sku", "order", "ticket", "invoice"}
# Also splits names: orderIds and order_ids become order and ids.
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
_SAMPLES = {"date": "2026-01-01", "date-time": "2026-01-01T12:00:00Z", "email": "someone@example.com"}
Guesses = Iterator[tuple[Any, TextValue | None]]  # a value, and the text of the question that it comes from


def list_best_tools(tools: Sequence[JsonObject], question: str) -> list[JsonObject]:
    """Return the tools that share the most words with the question, in their order in `tools`.

    Words of a tool's name count twice, words of its description once.

    Returns:
        Several tools only if they have the same score; [] if no tool shares a word with the question.
    """
    question_words = set(_split_words(question[:MAX_QUESTION_CHARS]))
    scores = [
        _score_shared_words(question_words, str(tool["name"]), 2)
        + _score_shared_words(question_words, str(tool.get("description") or ""), 1)
        for tool in tools
    ]
    best_score = max(scores, default=0)
    return [tool for tool, score in zip(tools, scores, strict=True) if best_score and score == best_score]


def guess_arguments(tool: JsonObject, question: str) -> JsonObject:
    """Return the required arguments of a tool, and the optional ones that the question names.

    A required argument without a valid value in the question gets one that is built from its schema.
    """
    parameters = tool.get("parameters")
    root = get_object(parameters)
    return _ArgumentGuesser(root, QuestionValues.from_question(question)).build_arguments(root, 0)


@dataclass(frozen=True, slots=True)
class _ArgumentGuesser:
    """Guesser of the arguments of one call.

    Attributes:
        root: schema of the tool's parameters.
        values: values in the question; a value is marked as used when it is assigned.
    """

    root: JsonObject
    values: QuestionValues

    def build_arguments(self, schema: JsonObject, depth: int) -> JsonObject:
        """Return the arguments for an object schema at this depth of nesting.

        Arguments that the question names get their values first, so that no other argument takes these values.
        """
        properties = {
            name: self._resolve(property_schema) for name, property_schema in _list_items(schema.get("properties"))
        }
        required_names = schema.get("required")
        required = [name for name in properties if isinstance(required_names, list) and name in required_names]
        arguments = {}
        for name, property_schema in properties.items():
            named_values = self._find_named_values(name, property_schema)
            if (value := self._take_first_valid(property_schema, named_values, None)) is not None:
                arguments[name] = value
        for name in required:
            if name not in arguments:
                likely_values = self._find_likely_values(name, properties[name], depth)
                default = _build_default(properties[name])
                arguments[name] = self._take_first_valid(properties[name], likely_values, default)
        return {name: arguments[name] for name in properties if name in arguments}

    def _resolve(self, schema: Any) -> JsonObject:
        """Follow local references, and the first choice other than null of anyOf or oneOf, to a schema."""
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

    def _take_first_valid(self, schema: JsonObject, guesses: Guesses, default: Any) -> Any:
        """Return the first value that is valid for the schema and mark its text as used; `default` if none is."""
        for value, source in guesses:
            if self._is_valid(schema, value):
                if source is not None:
                    self.values.mark_used(source)
                return value
        return default

    def _is_valid(self, schema: JsonObject, value: Any) -> bool:
        """Return whether a value is valid for the schema of an argument; True if the schema cannot be checked."""
        parameters: JsonObject = {"properties": {"value": schema}}
        parameters |= {name: self.root[name] for name in ("$defs", "definitions") if name in self.root}
        try:
            tool = ToolDefinition("guessed", parameters=parameters)
            return not list_schema_errors(tool, {"value": value})
        except (ValueError, TypeError):
            return True

    def _find_named_values(self, name: str, schema: JsonObject) -> Guesses:
        """Yield values that the question names for this argument."""
        type_name, word = _find_type(schema), _find_key_word(name)
        for option in _list_options(schema):
            if isinstance(option, str) and _mentions_option(self.values.question, option):
                yield option, self.values.find_text(option)
        if type_name in ("integer", "number"):
            yield from ((_parse_number(value.text), value) for value in self.values.find_near(word, NUMBER))
        elif type_name == "boolean" and (
            mention := re.search(rf"\b{re.escape(word)}", self.values.question, re.IGNORECASE)
        ):
            preceding_words = self.values.question[: mention.start()].lower().split()[-2:]
            yield not {"not", "no", "without", "never", "don't"} & set(preceding_words), None
        elif type_name == "string" and not _list_options(schema):
            yield from (
                (value.text, value) for value in self.values.find_near(word, QUOTED, ADDRESS, DATE, CODE, NUMBER, NAME)
            )
            for kind in (ADDRESS, DATE):
                if _expects_kind(kind, name, schema):
                    yield from ((value.text, value) for value in self.values.list_unused(kind))

    def _find_likely_values(self, name: str, schema: JsonObject, depth: int) -> Guesses:
        """Yield values for an argument that the question does not name, the most likely first."""
        type_name = _find_type(schema)
        known = find_known_value(name, schema, self.values.question)
        if known is not None and not self.values.is_used(str(known)):
            yield known, self.values.find_text(str(known))
        if depth < MAX_DEPTH and type_name == "object":
            yield self.build_arguments(schema, depth + 1), None
        elif depth < MAX_DEPTH and type_name == "array":
            yield from ((value, None) for value in self._build_lists(name, schema, depth + 1))
        elif type_name in ("integer", "number"):
            yield from ((_parse_number(value.text), value) for value in self.values.list_unused(NUMBER))
        elif type_name == "string":
            id_kinds = (CODE, NUMBER) if IDENTIFIER_WORDS & set(_split_words(name)) else ()
            kinds = (QUOTED, *id_kinds, NAME, CODE, DATE, NUMBER)
            yield from ((value.text, value) for value in self.values.list_unused(*kinds))
            yield self.values.question.strip().rstrip(".!?"), None

    def _build_lists(self, name: str, schema: JsonObject, depth: int) -> Iterator[list[Any]]:
        """Yield possible lists for an array: the options or all values that the question names, then one item.

        Values of a list that is not valid stay unused.

        Args:
            name: name of the argument.
            schema: schema of the array.
            depth: depth of nesting of the items.
        """
        items = self._resolve(schema.get("items"))
        if options := _list_options(items):
            yield [
                option
                for option in options
                if isinstance(option, str) and _mentions_option(self.values.question, option)
            ] or options[:1]
        kinds_by_type = {"string": (QUOTED, NAME, CODE), "integer": (NUMBER,), "number": (NUMBER,)}
        for kind in kinds_by_type.get(_find_type(items), ()):
            values = list(self.values.list_unused(kind))
            found = [_parse_number(value.text) if kind == NUMBER else value.text for value in values]
            if found and self._is_valid(schema, found):
                for value in values:
                    self.values.mark_used(value)
                yield found
        yield [self._take_first_valid(items, self._find_likely_values(name, items, depth), _build_default(items))]


def _list_items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, Mapping) else []


def _list_options(schema: JsonObject) -> list[Any]:
    """Return the values that `const` or `enum` permits, [] if the schema has neither."""
    if "const" in schema:
        return [schema["const"]]
    return schema["enum"] if isinstance(schema.get("enum"), list) else []


def _find_type(schema: JsonObject) -> str:
    """Return a schema's type, of several the first that is not null.

    Without a type it is "object" if there are properties, else "string".
    """
    type_name = schema.get("type")
    if isinstance(type_name, list):
        type_name = next((item for item in type_name if item != "null"), None)
    return type_name if isinstance(type_name, str) else "object" if "properties" in schema else "string"


def _expects_kind(kind: str, name: str, schema: JsonObject) -> bool:
    """Return whether an argument's name or format suggests a value of this kind: `ADDRESS` or `DATE`."""
    hint = f"{schema.get('format', '')} {name}".lower()
    words = ("mail", "url", "uri", "link") if kind == ADDRESS else ("date", "day", "time")
    return any(word in hint for word in words)


def _build_default(schema: JsonObject) -> Any:
    """Return the schema's default, its first option or example, or a value of its type."""
    examples = schema.get("examples")
    for candidates in ([schema["default"]] if "default" in schema else [], _list_options(schema), examples):
        if isinstance(candidates, list) and candidates:
            return candidates[0]
    minimum = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    number = minimum + ("exclusiveMinimum" in schema) if isinstance(minimum, (int, float)) else 1
    value_by_type: JsonObject = {
        "integer": number or 1,
        "number": number or 1,
        "boolean": False,
        "array": [],
        "object": {},
        "null": None,
    }
    return value_by_type.get(_find_type(schema), _SAMPLES.get(str(schema.get("format")), "text"))


def _parse_number(text: str) -> int | float:
    return float(text) if "." in text else int(text)


def _find_key_word(name: str) -> str:
    """Return the word of an argument's name that a question would contain, such as `order` for `order_id`."""
    words = _split_words(name)
    return next((word for word in words if word not in IDENTIFIER_WORDS - {"order", "ticket", "invoice"}), name.lower())


def _mentions_option(question: str, option: str) -> bool:
    pattern = r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", option.strip()))
    return bool(pattern) and re.search(rf"(?<!\w){pattern}(?!\w)", question, re.IGNORECASE) is not None


def _split_words(text: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(text)]


def _score_shared_words(question_words: set[str], tool_text: str, weight: int) -> int:
    words = set(_split_words(tool_text)) - load_stop_words()
    return weight * sum(
        any(_is_similar(word, question_word) for question_word in question_words - load_stop_words()) for word in words
    )


def _is_similar(first: str, second: str) -> bool:
    shorter, longer = sorted((first, second), key=len)
    return first == second or (len(shorter) >= MIN_STEM_CHARS and longer.startswith(shorter))
