"""JSON Schemas of Python types and signatures, in the form that endpoints accept.

The schemas have no titles, and references only for recursive types.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial, wraps
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic_core import ArgsKwargs

from toolbench.engine.errors import PlanError, ToolArgumentError
from toolbench.engine.json_paths import render_json_path
from toolbench.engine.types import JsonObject

_REFERENCE = "#/$defs/"
VALUE_KEYWORDS = ("enum", "const", "default", "examples", "example")  # keywords whose content is data, not a schema
# Keywords whose content is an object of schemas by name.
SCHEMAS_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def build_schema(python_type: Any) -> JsonObject:
    """Return the JSON Schema of a Python type.

    Raises:
        PlanError: the type has no JSON Schema.
    """
    try:
        return tidy_schema(TypeAdapter(python_type).json_schema())
    except PydanticUserError as error:
        raise PlanError(f"{python_type!r} has no JSON Schema: {_get_first_line(error)}") from None


class Signature:
    """The parameters of a typed function: their JSON Schema, and the conversion of arguments.

    Raises:
        PlanError: the signature cannot be read, or a JSON object cannot give a parameter: one that is positional-only,
            `*args`, without a type, or of a type without a JSON Schema.
    """

    def __init__(self, function: Callable[..., object]) -> None:
        self._name = getattr(function, "__name__", "function")
        for parameter in _list_parameters(function):
            if problem := _describe_parameter_problem(parameter):
                raise PlanError(f"{self._name} cannot be a tool: {problem}")
        try:
            self._adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(_build_collector(function))
            self.schema = tidy_schema(self._adapter.json_schema())
        except (PydanticUserError, NameError) as error:
            raise PlanError(f"{self._name} cannot be a tool: {_get_first_line(error)}") from None

    def convert_arguments(self, arguments: JsonObject) -> dict[str, Any]:
        """Return the keyword arguments of a call, converted to the types of the parameters.

        Raises:
            ToolArgumentError: arguments do not fit the types; the message names their JSON paths.
        """
        try:
            return self._adapter.validate_python(ArgsKwargs((), arguments))
        except ValidationError as error:
            messages = (
                f"{render_json_path(problem['loc'])}: {problem['msg']}" for problem in error.errors(include_url=False)
            )
            raise ToolArgumentError("; ".join(messages)) from None


def _list_parameters(function: Callable[..., object]) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(function).parameters.values()
    except (ValueError, TypeError) as error:
        raise PlanError(f"{function!r} cannot be a tool: {_get_first_line(error)}") from None


def _build_collector(function: Callable[..., object]) -> Any:
    """Return a function with the same signature that returns its arguments; pydantic accepts it as a type."""

    @wraps(unwrap_function(function), updated=())
    def collect(**arguments: object) -> dict[str, object]:
        return arguments

    vars(collect)["__signature__"] = inspect.signature(function)
    return collect


def unwrap_function(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function of a partial, or the `__call__` of a callable object's class.

    Functions, methods and classes are returned unchanged.
    """
    if isinstance(function, partial):
        return unwrap_function(function.func)
    return function if inspect.isroutine(function) or inspect.isclass(function) else type(function).__call__


def _describe_parameter_problem(parameter: inspect.Parameter) -> str:
    """Return why a tool cannot have this parameter; "" if it can."""
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        return f"*{parameter.name} has no names; a model gives arguments by name"
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        return f"{parameter.name} is taken by position only; a model gives arguments by name"
    if parameter.annotation is inspect.Parameter.empty:
        return f"{parameter.name} has no type"
    return ""


def tidy_schema(schema: JsonObject) -> JsonObject:
    """Return the schema without titles; the definitions that are not recursive replace the references to them."""
    definitions = {name: value for name, value in schema.get("$defs", {}).items() if isinstance(value, dict)}
    recursive_names = {name for name in definitions if name in _collect_referenced_names(name, definitions)}
    inlined_definitions = {name: value for name, value in definitions.items() if name not in recursive_names}
    tidied_schema = _tidy_part({key: value for key, value in schema.items() if key != "$defs"}, inlined_definitions)
    recursive_definitions = {
        name: _tidy_part(definitions[name], inlined_definitions) for name in sorted(recursive_names)
    }
    return {**tidied_schema, "$defs": recursive_definitions} if recursive_definitions else tidied_schema


def _tidy_part(schema: Any, inlined_definitions: Mapping[str, JsonObject]) -> Any:
    """Return a schema or list of schemas without titles; `inlined_definitions` replace the references to them.

    Keywords beside a reference override those of the definition.
    """
    if isinstance(schema, list):
        return [_tidy_part(item, inlined_definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    tidied_schema = {
        key: _tidy_member(key, value, inlined_definitions)
        for key, value in schema.items()
        if key not in ("title", "$ref")
    }
    reference = schema.get("$ref")
    if reference is None:
        return tidied_schema
    name = str(reference).removeprefix(_REFERENCE)
    return (
        {**_tidy_part(inlined_definitions[name], inlined_definitions), **tidied_schema}
        if name in inlined_definitions
        else {"$ref": reference, **tidied_schema}
    )


def _tidy_member(key: str, value: Any, inlined_definitions: Mapping[str, JsonObject]) -> Any:
    """Return the value of a keyword, with the schemas in it tidied."""
    if key in VALUE_KEYWORDS:
        return value
    if key in SCHEMAS_BY_NAME and isinstance(value, dict):
        return {name: _tidy_part(inner_schema, inlined_definitions) for name, inner_schema in value.items()}
    return _tidy_part(value, inlined_definitions)


def _collect_referenced_names(name: str, definitions: Mapping[str, JsonObject]) -> set[str]:
    """Return the names of the definitions that a definition refers to, directly or indirectly.

    Its own name is among them only if the definition is recursive.
    """
    referenced_names: set[str] = set()
    pending_names = list(_iterate_references(definitions[name]))
    while pending_names:
        if (reference := pending_names.pop()) in definitions and reference not in referenced_names:
            referenced_names.add(reference)
            pending_names += _iterate_references(definitions[reference])
    return referenced_names


def _iterate_references(schema: Any) -> Iterator[str]:
    """Yield the name of the definition for each reference in a schema, with repetitions."""
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        yield schema["$ref"].removeprefix(_REFERENCE)
    for child in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from _iterate_references(child)


def _get_first_line(error: Exception) -> str:
    return str(error).split("\n", 1)[0][:300]
