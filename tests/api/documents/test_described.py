"""Descriptions of fields in the OpenAPI document."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from toolbench.api.application import API
from toolbench.api.documents.described import Schema, parse_docstring


class Part(Schema):
    """Part of an example.

    Attributes:
        size: size in bytes,
            at most 9.
        name: name of the part.
    """

    size: int
    name: str


class NamedPart(Part):
    """Part with another name.

    Attributes:
        name: another name: a unique one.
    """

    name: str = ""


def _iter_schemas(schema: type[Schema] = Schema) -> Iterator[type[Schema]]:
    yield schema
    for child in schema.__subclasses__():
        yield from _iter_schemas(child)


def test_schema_describes_own_and_inherited_fields() -> None:
    document = NamedPart.model_json_schema()
    assert document["description"] == "Part with another name."
    descriptions = {name: field["description"] for name, field in document["properties"].items()}
    assert descriptions == {"size": "size in bytes, at most 9.", "name": "another name: a unique one."}


def test_attributes_in_docstrings_of_schemas_are_fields() -> None:
    assert API is not None  # its import loads all schemas
    for schema in _iter_schemas():
        _, descriptions = parse_docstring(schema.__doc__ or "")
        assert descriptions.keys() <= schema.model_fields.keys(), schema


@pytest.mark.django_db
def test_openapi_document_describes_query_parameters_and_bodies(client: Client) -> None:
    document: Any = client.get("/api/v1/openapi.json").json()
    parameters = {row["name"]: row for row in document["paths"]["/api/v1/trials"]["get"]["parameters"]}
    assert "429" in parameters["had"]["description"]
    assert "threshold" in document["components"]["schemas"]["LaunchBody"]["properties"]["until"]["description"]
    assert "409" in document["components"]["schemas"]["LaunchBody"]["properties"]["agreed"]["description"]
