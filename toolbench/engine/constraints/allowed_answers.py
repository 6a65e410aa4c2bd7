"""The allowed answers: calls of the tools that the tool choice leaves, and a final text where one is allowed."""

from collections.abc import Sequence
from dataclasses import dataclass

from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.normalise_schema import SchemaNormaliser
from toolbench.engine.constraints.schema_support import SchemaSupport, SizeLimits
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject

FINAL_ANSWER_KEY = "answer"  # the key around alternatives where a schema's root must be one object


@dataclass(frozen=True, slots=True)
class AllowedAnswers:
    """The allowed answers of one request.

    Attributes:
        calls: name and schema of the arguments of each tool.
        final: schema of a final text; None if it is not allowed.
        definitions: what references in the schemas lead to.
        many: maximum number of calls in one answer.
    """

    calls: tuple[tuple[str, JsonObject], ...]
    final: JsonObject | None
    definitions: JsonObject
    dropped: tuple[DroppedKeyword, ...]
    many: int = 1


def select_tools(tools_json: Sequence[JsonObject], tool_choice: RequestChoice) -> list[JsonObject]:
    """Return the tools that a tool choice names; all if it names none of them."""
    function = tool_choice.get("function") if isinstance(tool_choice, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    return [tool for tool in tools_json if tool["function"]["name"] == name] or list(tools_json)


def is_final_answer_allowed(tool_choice: RequestChoice) -> bool:
    """Return whether a final answer is allowed: not if the choice is `required` or names a tool."""
    return not isinstance(tool_choice, dict) and tool_choice != "required"


def build_allowed_answers(
    tools_json: Sequence[JsonObject], *, final: bool, dialect: SchemaSupport, limits: SizeLimits, most: int = 1
) -> AllowedAnswers:
    """Return the allowed answers.

    Raises:
        PlanError: the schema of a tool cannot be used.
    """
    normaliser = SchemaNormaliser(dialect, limits)
    calls = tuple(
        (str(tool["function"]["name"]), normaliser.arguments(tool["function"], place))
        for place, tool in enumerate(tools_json)
    )
    text = normaliser.text() if final else None
    return AllowedAnswers(calls, text, normaliser.definitions, normaliser.dropped, most)


def build_answer_schema(answers: AllowedAnswers, *, one_object: bool = False, counted: bool = True) -> JsonObject:
    """Return one JSON Schema of all answers.

    An answer is `{"name", "arguments"}` of a tool, `{"calls": […]}` if there may be several calls, or `{"final"}`.

    Args:
        answers: the allowed answers.
        one_object: put alternatives under the key `answer`.
        counted: limit the number of calls.
    """
    calls = [_build_call_schema(name, arguments) for name, arguments in answers.calls]
    if answers.many > 1:
        most = {"maxItems": answers.many} if counted else {}
        items = {"type": "array", "items": _build_union(calls), "minItems": 1, **most}
        calls = [_build_closed_object({"calls": items})]
    final = [_build_closed_object({"final": answers.final})] if answers.final is not None else []
    schema = _build_union([*calls, *final])
    if one_object and "anyOf" in schema:
        schema = _build_closed_object({FINAL_ANSWER_KEY: schema})
    return {**schema, **({"$defs": answers.definitions} if answers.definitions else {})}


def _build_call_schema(name: str, arguments: JsonObject) -> JsonObject:
    return _build_closed_object({"name": {"type": "string", "enum": [name]}, "arguments": arguments})


def _build_union(schemas: list[JsonObject]) -> JsonObject:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _build_closed_object(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
