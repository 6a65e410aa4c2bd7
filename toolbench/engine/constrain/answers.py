"""What may be answered: calls of the tools that the choice leaves, and a final text where one is allowed."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.engine.constrain.dialects import Dialect, Limits
from toolbench.engine.constrain.dropping import Dropped
from toolbench.engine.constrain.normalising import Normaliser
from toolbench.engine.messages import JsonObject
from toolbench.engine.tools.choice import WireChoice

ANSWER = "answer"  # the key around alternatives where a schema's root must be one object


@dataclass(frozen=True, slots=True)
class Answers:
    """`calls` are names with the schema of their arguments, `final` the schema of a final text or None, `many` how
    many calls one answer may hold. References lead to `definitions`."""

    calls: tuple[tuple[str, JsonObject], ...]
    final: JsonObject | None
    definitions: JsonObject
    dropped: tuple[Dropped, ...]
    many: int = 1


def chosen(tools_json: Sequence[JsonObject], tool_choice: WireChoice) -> list[JsonObject]:
    """The tools a named tool choice leaves; all where it names none of them."""
    function = tool_choice.get("function") if isinstance(tool_choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return [tool for tool in tools_json if tool["function"]["name"] == name] or list(tools_json)


def may_end(tool_choice: WireChoice) -> bool:
    """Whether a final answer is allowed: not where the choice is `required` or names a tool."""
    return not isinstance(tool_choice, dict) and tool_choice != "required"


def answers_of(
    tools_json: Sequence[JsonObject], *, final: bool, dialect: Dialect, limits: Limits, many: int = 1
) -> Answers:
    """Raises PlanError for a tool whose schema cannot be used."""
    normaliser = Normaliser(dialect, limits)
    calls = tuple(
        (str(tool["function"]["name"]), normaliser.arguments(tool["function"], place))
        for place, tool in enumerate(tools_json)
    )
    text = normaliser.text() if final else None
    return Answers(calls, text, normaliser.definitions, normaliser.dropped, many)


def as_schema(answers: Answers, *, one_object: bool = False, counted: bool = True) -> JsonObject:
    """One JSON Schema of every answer: `{"name", "arguments"}` of a tool, `{"calls": […]}` where several may come at
    once, `{"final"}`. `one_object` puts alternatives under the key `answer`; without `counted` nothing bounds how
    many calls there are."""
    calls = [_call(name, arguments) for name, arguments in answers.calls]
    if answers.many > 1:
        most = {"maxItems": answers.many} if counted else {}
        items = {"type": "array", "items": _one_of(calls), "minItems": 1, **most}
        calls = [_closed({"calls": items})]
    final = [_closed({"final": answers.final})] if answers.final is not None else []
    schema = _one_of([*calls, *final])
    if one_object and "anyOf" in schema:
        schema = _closed({ANSWER: schema})
    return {**schema, **({"$defs": answers.definitions} if answers.definitions else {})}


def _call(name: str, arguments: JsonObject) -> JsonObject:
    return _closed({"name": {"type": "string", "enum": [name]}, "arguments": arguments})


def _one_of(schemas: list[JsonObject]) -> JsonObject:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
