from collections.abc import Callable
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from toolbench.engine.errors import PlanError, ToolArgumentError
from toolbench.engine.tools.typed_schemas import Signature, build_schema


class Unit(Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Place(BaseModel):
    """Where."""

    title: str = Field(description="Its name")
    at: tuple[float, float] | None = None


class Branch(BaseModel):
    leaves: int = 0
    branches: list["Branch"] = []


def forecast(
    place: Place,
    unit: Unit = Unit.CELSIUS,
    kind: Annotated[Literal["short", "long"], Field(description="How much")] = "short",
    *,
    days: Annotated[int, Field(ge=1, le=14)] = 3,
    since: date | None = None,
) -> str:
    return f"{place.title} {unit.name} {kind} {days} {since}"


def test_signature_schema_has_types_descriptions_defaults_and_enums() -> None:
    assert Signature(forecast).schema == {
        "type": "object",
        "properties": {
            "place": {
                "type": "object",
                "description": "Where.",
                "properties": {
                    "title": {"type": "string", "description": "Its name"},
                    "at": {
                        "anyOf": [
                            {
                                "type": "array",
                                "maxItems": 2,
                                "minItems": 2,
                                "prefixItems": [{"type": "number"}, {"type": "number"}],
                            },
                            {"type": "null"},
                        ],
                        "default": None,
                    },
                },
                "required": ["title"],
            },
            "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"},
            "kind": {"type": "string", "enum": ["short", "long"], "default": "short", "description": "How much"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14, "default": 3},
            "since": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}], "default": None},
        },
        "required": ["place"],
        "additionalProperties": False,
    }


def test_build_schema_keeps_only_recursive_definitions() -> None:
    schema = build_schema(list[Branch])

    assert schema["items"] == {"$ref": "#/$defs/Branch"}
    assert list(schema["$defs"]) == ["Branch"]


def test_convert_arguments_returns_types_of_the_function() -> None:
    converted = Signature(forecast).convert_arguments(
        {"place": {"title": "Oslo", "at": [59.9, 10.7]}, "since": "2026-01-31"}
    )

    assert converted["place"] == Place(title="Oslo", at=(59.9, 10.7))
    assert converted["unit"] is Unit.CELSIUS
    assert converted["since"] == date(2026, 1, 31)


def test_convert_arguments_error_names_path_and_problem() -> None:
    with pytest.raises(ToolArgumentError) as caught:
        Signature(forecast).convert_arguments({"place": {}, "days": 99, "town": "Oslo"})

    assert str(caught.value).split("; ") == [
        "$.place.title: Field required",
        "$.days: Input should be less than or equal to 14",
        "$.town: Unexpected keyword argument",
    ]


def star(*words: str) -> None: ...
def positional(word: str, /) -> None: ...
def opaque(word: Callable[[], object]) -> None: ...
def accept_keywords(word: str, **more: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (star, r"star cannot be a tool: \*words has no names"),
        (positional, "word is taken by position only"),
        (lambda word: word, "word has no type"),
        (opaque, "opaque cannot be a tool"),
    ],
)
def test_signature_refuses_function_that_keywords_cannot_call(function: Any, problem: str) -> None:
    with pytest.raises(PlanError, match=problem):
        Signature(function)


def test_signature_with_typed_keywords_allows_other_arguments() -> None:
    signature = Signature(accept_keywords)

    assert signature.schema["additionalProperties"] == {"type": "integer"}
    assert signature.convert_arguments({"word": "x", "more_of_it": 2}) == {"word": "x", "more_of_it": 2}
