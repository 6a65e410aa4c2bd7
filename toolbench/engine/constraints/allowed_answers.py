"""Answers that a request allows: calls of the tools that may be called, or a final text."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolbench.engine.constraints.dropped_keywords import DroppedKeyword
from toolbench.engine.constraints.normalise_schema import SchemaNormaliser
from toolbench.engine.constraints.schema_support import SchemaSupport, SizeLimits
from toolbench.engine.strict_json import get_object
from toolbench.engine.tools.choice import RequestChoice
from toolbench.engine.types import JsonObject, get_called_function

ANSWER_KEY = "answer"  # key of the alternatives if the root of the schema must be an object


@dataclass(frozen=True, slots=True)
class AllowedAnswers:
    """The allowed answers of one request.

    Attributes:
        call_schemas: for each tool its name and the schema of its arguments, in the order of the tools.
        final_schema: schema of a final text; None if a final text is not allowed.
        definitions: the schemas to which `$ref`s in the other schemas refer, by name.
        dropped_keywords: keywords of the tools' schemas that are not enforced.
        max_calls: maximum number of calls in one answer.
    """

    call_schemas: tuple[tuple[str, JsonObject], ...]
    final_schema: JsonObject | None
    definitions: JsonObject
    dropped_keywords: tuple[DroppedKeyword, ...]
    max_calls: int = 1


def select_tools(tools_json: Sequence[JsonObject], tool_choice: RequestChoice) -> list[JsonObject]:
    """Return the tools that a tool choice names, or all tools if the choice names none of them."""
    names = _list_chosen_names(tool_choice) if isinstance(tool_choice, dict) else []
    return [tool for tool in tools_json if tool["function"]["name"] in names] or list(tools_json)


def _list_chosen_names(tool_choice: JsonObject) -> list[Any]:
    """Return the names in a tool choice: of one tool, or of OpenAI's `allowed_tools`."""
    choices = get_object(tool_choice.get("allowed_tools")).get("tools", [tool_choice])
    choice_objects = [choice for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    return [get_called_function(choice).get("name") or choice.get("name") for choice in choice_objects]


def is_final_answer_allowed(tool_choice: RequestChoice) -> bool:
    """Return whether a tool choice allows a final answer instead of a call.

    An object demands a call unless its type, or its mode for OpenAI's `allowed_tools`, is `auto` or `none`.
    """
    if isinstance(tool_choice, dict):
        mode = get_object(tool_choice.get("allowed_tools")).get("mode", tool_choice.get("type"))
        return mode in ("auto", "none")
    return tool_choice not in ("required", "any")


def build_allowed_answers(
    tools_json: Sequence[JsonObject],
    *,
    allows_final: bool,
    support: SchemaSupport,
    limits: SizeLimits,
    max_calls: int = 1,
) -> AllowedAnswers:
    """Return the allowed answers, with schemas that the constraint can enforce.

    Args:
        tools_json: the tools that may be called, in OpenAI's format.
        allows_final: whether a final text is allowed.
        support: the keywords that the constraint enforces.
        limits: limits of strings and lists whose schema has none.
        max_calls: maximum number of calls in one answer.

    Raises:
        PlanError: the schema of a tool cannot be used, or the schemas have too many parts.
    """
    normaliser = SchemaNormaliser(support, limits)
    call_schemas = tuple(
        (str(tool["function"]["name"]), normaliser.normalise_arguments(tool["function"], index))
        for index, tool in enumerate(tools_json)
    )
    final_schema = normaliser.build_text_schema() if allows_final else None
    return AllowedAnswers(call_schemas, final_schema, normaliser.definitions, normaliser.dropped_keywords, max_calls)


def build_answer_schema(
    answers: AllowedAnswers, *, is_object_required: bool = False, limits_call_count: bool = True
) -> JsonObject:
    """Return one JSON Schema of all answers.

    A call is the object `{"name", "arguments"}`. If several calls are allowed, an answer with one or more calls is
    `{"calls": […]}` instead. A final text, if it is allowed, is `{"final"}`.

    Args:
        answers: the allowed answers.
        is_object_required: whether the root must be an object; alternatives are then put under the key `answer`.
        limits_call_count: whether the schema limits the number of calls to `answers.max_calls`.
    """
    call_schemas = [_build_call_schema(name, arguments) for name, arguments in answers.call_schemas]
    if answers.max_calls > 1:
        count_limit = {"maxItems": answers.max_calls} if limits_call_count else {}
        items = {"type": "array", "items": _build_union(call_schemas), "minItems": 1, **count_limit}
        call_schemas = [_build_closed_object({"calls": items})]
    final_schemas = [_build_closed_object({"final": answers.final_schema})] if answers.final_schema is not None else []
    schema = _build_union([*call_schemas, *final_schemas])
    if is_object_required and "anyOf" in schema:
        schema = _build_closed_object({ANSWER_KEY: schema})
    return {**schema, **({"$defs": answers.definitions} if answers.definitions else {})}


def _build_call_schema(name: str, arguments: JsonObject) -> JsonObject:
    return _build_closed_object({"name": {"type": "string", "enum": [name]}, "arguments": arguments})


def _build_union(schemas: list[JsonObject]) -> JsonObject:
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _build_closed_object(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
