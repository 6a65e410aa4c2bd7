"""Views of the OpenAPI document, of a page that lists its operations, and of unknown addresses."""

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
    """Parameter of an operation, or field of its body.

    Attributes:
        place: `path`, `query`, `header` or `body`.
        kind: its type in words, such as `integer, 1 to 2000`.
    """

    place: str
    name: str
    kind: str
    required: bool


@dataclass(frozen=True, slots=True)
class OperationRow:
    """Operation of the page.

    Attributes:
        name: the operation id of the OpenAPI document.
        scope: the scope that a token needs.
    """

    name: str
    method: str
    path: str
    description: str
    scope: str
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
    return render(request, "api/docs.html", {"groups": _list_operations(), "problems": problems})


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
                fields=(*_list_parameters(details), *_list_body_fields(details, document)),
            )
            groups[details["tags"][0]].append(row)
    return tuple((tag, tuple(rows)) for tag, rows in groups.items())


def _list_parameters(details: dict[str, Any]) -> list[FieldRow]:
    return [
        FieldRow(parameter["in"], parameter["name"], _describe_kind(parameter["schema"]), parameter["required"])
        for parameter in details["parameters"]
    ]


def _list_body_fields(details: dict[str, Any], document: dict[str, Any]) -> list[FieldRow]:
    content = details.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema_name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    schema = document["components"]["schemas"].get(schema_name, {})
    required_names = schema.get("required", ())
    return [
        FieldRow("body", name, _describe_kind(field_schema), name in required_names)
        for name, field_schema in schema.get("properties", {}).items()
    ]


def _describe_kind(schema: dict[str, Any]) -> str:
    """Return the type of values that fit a JSON Schema in words, such as `integer, 1 to 2000`."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_describe_kind(option) for option in schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {_describe_kind(schema.get('items', {}))}"
    bounds = [str(schema[name]) for name in ("minimum", "maximum") if name in schema]
    kind = str(schema.get("type", schema.get("const", "any")))
    return f"{kind}, {' to '.join(bounds)}" if len(bounds) == 2 else kind
