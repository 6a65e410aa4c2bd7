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


def test_types_descriptions_defaults_enums_and_models_become_one_schema() -> None:
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


def test_only_a_type_that_holds_itself_keeps_its_definition() -> None:
    schema = build_schema(list[Branch])

    assert schema["items"] == {"$ref": "#/$defs/Branch"}
    assert list(schema["$defs"]) == ["Branch"]


def test_arguments_arrive_as_the_types_that_the_function_names() -> None:
    read = Signature(forecast).convert_arguments(
        {"place": {"title": "Oslo", "at": [59.9, 10.7]}, "since": "2026-01-31"}
    )

    assert read["place"] == Place(title="Oslo", at=(59.9, 10.7))
    assert read["unit"] is Unit.CELSIUS
    assert read["since"] == date(2026, 1, 31)


def test_refused_arguments_say_where_and_why() -> None:
    with pytest.raises(ToolArgumentError) as refused:
        Signature(forecast).convert_arguments({"place": {}, "days": 99, "town": "Oslo"})

    assert str(refused.value).split("; ") == [
        "$.place.title: Field required",
        "$.days: Input should be less than or equal to 14",
        "$.town: Unexpected keyword argument",
    ]


def star(*words: str) -> None: ...
def by_place(word: str, /) -> None: ...
def opaque(word: Callable[[], object]) -> None: ...
def open_to_all(word: str, **more: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (star, r"star cannot be a tool: \*words has no names"),
        (by_place, "word is taken by position only"),
        (lambda word: word, "word has no type"),
        (opaque, "opaque cannot be a tool"),
    ],
)
def test_a_function_that_no_json_object_can_call_is_refused_with_a_reason(function: Any, why: str) -> None:
    with pytest.raises(PlanError, match=why):
        Signature(function)


def test_other_keywords_of_one_type_are_allowed_if_function_takes_them() -> None:
    signature = Signature(open_to_all)

    assert signature.schema["additionalProperties"] == {"type": "integer"}
    assert signature.convert_arguments({"word": "x", "more_of_it": 2}) == {"word": "x", "more_of_it": 2}
