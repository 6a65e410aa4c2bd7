"""Pydantic models with the JSON Schema of a tool, for frameworks that describe arguments by a model."""

import copy
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from toolbench.adapters.python_tools import render_schema_errors
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject


class ToolArguments(BaseModel):
    """Base class of the arguments of a tool.

    Arguments are valid if they fit the JSON Schema of the tool, which is also the schema of the model.

    Attributes:
        definition: the tool; `build_argument_model` sets it for each subclass.
    """

    model_config = ConfigDict(extra="allow")
    definition: ClassVar[ToolDefinition]

    @model_validator(mode="before")
    @classmethod
    def _check_schema(cls, arguments: Any) -> Any:
        if errors := render_schema_errors(cls.definition, arguments):
            raise ValueError(errors)
        return arguments

    @classmethod
    def model_json_schema(cls, *arguments: Any, **options: Any) -> JsonObject:
        """Return the JSON Schema of the tool's parameters; pydantic's options have no effect."""
        return build_object_schema(cls.definition)


def build_argument_model(definition: ToolDefinition) -> type[ToolArguments]:
    """Return a new model for the arguments of a tool."""
    model = create_model(f"{definition.name}_arguments", __base__=ToolArguments)
    model.definition = definition
    return model


def build_object_schema(definition: ToolDefinition) -> JsonObject:
    """Return a copy of the JSON Schema of a tool's parameters.

    Frameworks expect the keywords `type` and `properties`, so missing ones are added.
    """
    return {"type": "object", "properties": {}, **copy.deepcopy(dict(definition.parameters))}
