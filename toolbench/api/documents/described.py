"""Base class of all schemas: it copies the descriptions of fields from docstrings to the OpenAPI document."""

import inspect
import re
from collections.abc import Mapping

import ninja
from pydantic import GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

_SECTION = "\n\nAttributes:\n"
_NAME = re.compile(r"^ {4}(\w+): ", re.MULTILINE)  # before the description of an attribute, such as `    limit: `


class Schema(ninja.Schema):
    """Schema whose fields are described under `Attributes:` in its docstring or in that of a base class."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        reference = handler(core_schema)
        json_schema = handler.resolve_ref_schema(reference)
        for base in reversed(cls.__mro__):
            text, descriptions = parse_docstring(base.__doc__ or "")
            if base is cls and text:
                json_schema["description"] = text
            for name in descriptions.keys() & json_schema.get("properties", {}).keys():
                json_schema["properties"][name]["description"] = descriptions[name]
        return reference


def parse_docstring(docstring: str) -> tuple[str, Mapping[str, str]]:
    """Return the text of a docstring before `Attributes:`, and the description of each attribute by its name."""
    text, _, section = inspect.cleandoc(docstring).partition(_SECTION)
    _, *parts = _NAME.split(section)
    return text, {name: " ".join(lines.split()) for name, lines in zip(parts[::2], parts[1::2], strict=True)}
