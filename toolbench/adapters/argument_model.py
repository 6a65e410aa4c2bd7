"""Pydantic models with the JSON Schema of a tool, for frameworks that describe arguments by a model."""

import copy
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, create_model, model_validator

from toolbench.adapters.python_tools import render_schema_errors
from toolbench.engine.tools.definitions import ToolDefinition
from toolbench.engine.types import JsonObject


class ToolArguments(BaseModel):
    """Arguments of a tool. The schema of the tool decides which ones are valid, and is the schema of the model."""

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
        """Return the parameters of the tool; pydantic's options have no effect."""
        return build_object_schema(cls.definition)


def build_argument_model(definition: ToolDefinition) -> type[ToolArguments]:
    """Return the model for the arguments of a tool."""
    model = create_model(f"{definition.name}_arguments", __base__=ToolArguments)
    model.definition = definition
    return model


def build_object_schema(definition: ToolDefinition) -> JsonObject:
    """Return a copy of the parameters of a tool that has a type and properties, as frameworks expect."""
    return {"type": "object", "properties": {}, **copy.deepcopy(dict(definition.parameters))}
