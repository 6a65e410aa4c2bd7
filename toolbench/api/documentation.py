"""Views of the OpenAPI document, of a page that lists its operations, and of unknown addresses."""

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from toolbench.api.application import API
from toolbench.api.etags import add_etag
from toolbench.api.problems import TITLES, build_problem


@dataclass(frozen=True, slots=True)
class FieldRow:
    """Parameter of an operation, field of its body, or field of a schema.

    Attributes:
        place: `path`, `query`, `header` or `body`; "" for a field of a schema.
        kind: its type in words, such as `integer, 1 to 2000`.
        default: its default as JSON; "" without one.
        description: what it means; "" without a description.
    """

    place: str
    name: str
    kind: str
    required: bool
    default: str
    description: str


@dataclass(frozen=True, slots=True)
class OperationRow:
    """Operation of the page.

    Attributes:
        name: the operation id of the OpenAPI document.
        scope: the scope that a token needs.
        answer: kind of the answer, such as `list of RunDocument`; "" for a file, and without an answer.
    """

    name: str
    method: str
    path: str
    description: str
    scope: str
    answer: str
    fields: tuple[FieldRow, ...]


@dataclass(frozen=True, slots=True)
class SchemaRow:
    """Schema of an object. The `kind` of a field and the `answer` of an operation refer to it by name."""

    name: str
    description: str
    fields: tuple[FieldRow, ...]


@login_not_required
@require_safe
def get_document(request: HttpRequest) -> Any:
    """Return the OpenAPI document (GET /api/v1/openapi.json).

    No sign-in is needed, since the document is the same in all installations.
    """
    return add_etag(request, JsonResponse(_build_document(), json_dumps_params={"indent": 1}))


@require_safe
def show(request: HttpRequest) -> HttpResponse:
    """Show the operations by tag, without scripts (GET /api/v1/docs)."""
    problems = [(status, title) for status, title in TITLES.items() if status < 500]
    context = {"groups": _list_operations(), "schemas": _list_schemas(), "problems": problems}
    return render(request, "api/docs.html", context)


@login_not_required
@csrf_exempt
def answer_unknown(request: HttpRequest) -> HttpResponse:
    """Answer a request to an address without an operation with 404."""
    return build_problem(404, "There is no such address. The page /api/v1/docs lists all operations.")


@cache
def _build_document() -> dict[str, Any]:
    return dict(API.get_openapi_schema())


@cache
def _list_operations() -> tuple[tuple[str, tuple[OperationRow, ...]], ...]:
    """Return (tag, operations) pairs in the order of the OpenAPI document."""
    document = _build_document()
    groups: dict[str, list[OperationRow]] = defaultdict(list)
    for path, methods in document["paths"].items():
        for method, details in methods.items():
            row = OperationRow(
                name=details["operationId"],
                method=method.upper(),
                path=path,
                description=details.get("description", ""),
                scope=details["x-scope"],
                answer=_describe_answer(details),
                fields=(*_list_parameters(details), *_list_body_fields(details, document)),
            )
            groups[details["tags"][0]].append(row)
    return tuple((tag, tuple(rows)) for tag, rows in groups.items())


@cache
def _list_schemas() -> tuple[SchemaRow, ...]:
    """Return the schemas of objects, sorted by name."""
    schemas = _build_document()["components"]["schemas"]
    return tuple(
        SchemaRow(name, schema.get("description", ""), tuple(_list_fields(schema)))
        for name, schema in sorted(schemas.items())
        if "properties" in schema
    )


def _list_parameters(details: dict[str, Any]) -> list[FieldRow]:
    return [
        _build_field(parameter["in"], parameter["name"], parameter["schema"] | parameter, parameter["required"])
        for parameter in details["parameters"]
    ]


def _describe_answer(details: dict[str, Any]) -> str:
    """Return the kind of the JSON answer with the first status that has one; "" without one."""
    contents = (response.get("content", {}) for status, response in details["responses"].items() if status != "default")
    return next((_describe_kind(content["application/json"]["schema"]) for content in contents if content), "")


def _list_body_fields(details: dict[str, Any], document: dict[str, Any]) -> list[FieldRow]:
    content = details.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema_name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    return _list_fields(document["components"]["schemas"].get(schema_name, {}), "body")


def _list_fields(schema: dict[str, Any], place: str = "") -> list[FieldRow]:
    required_names = schema.get("required", ())
    return [
        _build_field(place, name, field_schema, name in required_names)
        for name, field_schema in schema.get("properties", {}).items()
    ]


def _build_field(place: str, name: str, schema: dict[str, Any], required: bool) -> FieldRow:
    default = json.dumps(schema["default"]) if "default" in schema else ""
    return FieldRow(place, name, _describe_kind(schema), required, default, schema.get("description", ""))


def _describe_kind(schema: dict[str, Any]) -> str:
    """Return the type of values that fit a JSON Schema in words, such as `integer, 1 to 2000`."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe_kind(option) for option in schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema or "const" in schema:
        return " | ".join(json.dumps(value) for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"list of {_describe_kind(schema.get('items', {}))}"
    bounds = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    kind = str(schema.get("type", "any"))
    return f"{kind}, {' to '.join(bounds)}" if len(bounds) == 2 else kind
