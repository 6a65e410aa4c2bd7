"""Application of the HTTP API: routers, error handlers, OpenAPI document and URLs."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ObjectDoesNotExist, RequestDataTooBig
from django.http import Http404, HttpRequest, HttpResponseNotAllowed, UnreadablePostError
from django.http.response import HttpResponseBase
from django.urls import URLPattern, URLResolver
from django.views.decorators.csrf import csrf_exempt
from ninja import NinjaAPI, Router
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.openapi.schema import REF_TEMPLATE, OpenAPISchema
from ninja.operation import Operation

from toolbench.api import problems
from toolbench.api.authentication import ToolbenchToken
from toolbench.api.bodies import BodyParser, JsonRenderer
from toolbench.api.etags import add_etag
from toolbench.api.masking import mask_response
from toolbench.api.operations import (
    cases,
    decisions,
    gateway,
    library,
    models,
    playground,
    providers,
    results,
    runs,
    schedules,
    sharing,
    traffic,
    trials,
)
from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.paid_requests import PaidRequestsUnconfirmedError
from toolbench.lab.runs.idempotent_launch import LaunchKeyError

VERSION = "1"
PREFIX = "/api/v1/"
ROUTERS: tuple[tuple[str, Router], ...] = (
    ("Runs", runs.router),
    ("Trials", trials.router),
    ("Results", results.router),
    ("Decisions", decisions.router),
    ("Library", library.router),
    ("Recorded traffic", traffic.router),  # before the test cases, whose addresses match any slug
    ("Test cases", cases.router),
    ("Playground", playground.router),
    ("Providers", providers.router),
    ("Models", models.router),
    ("Schedules", schedules.router),
    ("Gateway", gateway.router),
    ("Sharing and files", sharing.router),
)
HANDLERS: tuple[tuple[type[Exception], Callable[..., Any]], ...] = (
    (problems.ProblemError, problems.handle_problem),
    (Http404, problems.handle_not_found),
    (ObjectDoesNotExist, problems.handle_missing_row),
    (AuthenticationError, problems.handle_unauthenticated),
    (HttpError, problems.handle_http_error),
    (ValidationError, problems.handle_invalid_request),
    (InvalidFieldsError, problems.handle_invalid_fields),
    (PaidRequestsUnconfirmedError, problems.handle_confirmation),
    (LaunchKeyError, problems.handle_launch_key),
    (RequestDataTooBig, problems.handle_large_body),
    (UnreadablePostError, problems.handle_broken_body),
    (Exception, problems.handle_defect),
)
_DESCRIPTION = (
    "Launch, control and read runs, talk to models, and manage the library, providers, schedules and the gateway. "
    "Send a token, made on the page Tokens, in the header Authorization: Bearer TOKEN. "
    "Errors are problem documents (RFC 9457)."
)


class LabAPI(NinjaAPI):
    """API whose OpenAPI document also names the scope of each operation and the form of errors."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the id of an operation: the name of its Python function."""
        return operation.view_func.__name__

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the OpenAPI document. Its paths begin with `path_prefix`, or with PREFIX if that is None or ""."""
        document = super().get_openapi_schema(path_prefix=path_prefix or PREFIX, path_params=path_params)
        schema = problems.ProblemDocument.model_json_schema(ref_template=REF_TEMPLATE)
        document["components"]["schemas"] |= {**schema.pop("$defs", {}), "ProblemDocument": schema}
        content = {problems.CONTENT_TYPE: {"schema": {"$ref": REF_TEMPLATE.format(model="ProblemDocument")}}}
        scopes = {
            self.get_openapi_operation_id(operation): _get_scope(operation) for operation in self._list_operations()
        }
        for methods in document["paths"].values():
            for details in methods.values():
                details["responses"]["default"] = {"description": "A problem document", "content": content}
                details["x-scope"] = scopes[details["operationId"]]
        return document

    def _list_operations(self) -> list[Operation]:
        views = [view for router in self._get_bound_routers() for view in router.path_operations.values()]
        return [operation for view in views for operation in view.operations]


def _get_scope(operation: Operation) -> str:
    (auth,) = operation.auth_callbacks
    assert isinstance(auth, ToolbenchToken)
    return auth.scope.value


def _build_api() -> LabAPI:
    api = LabAPI(
        title="Toolbench",
        version=VERSION,
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        urls_namespace="api",
        parser=BodyParser(),
        renderer=JsonRenderer(),
    )
    for error, handle in HANDLERS:
        api.add_exception_handler(error, handle)
    for tag, router in ROUTERS:
        api.add_router("", router, tags=[tag])
    return api


def _wrap_view(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return a view that also answers HEAD, masks secrets in responses and adds ETags.

    A method that the address does not support gets a problem document (405).
    """

    @wraps(view)
    def respond(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "HEAD":
            request.method = "GET"
        response = view(request, *args, **kwargs)
        if isinstance(response, HttpResponseNotAllowed):
            allowed = response.headers["Allow"]
            return problems.build_problem(405, f"Use {allowed} at this address.", headers={"Allow": allowed})
        return add_etag(request, mask_response(response))

    # A cookie allows only reading (authentication.py), so a forged request of another site cannot change anything.
    return login_not_required(csrf_exempt(respond))


def list_urls() -> list[URLPattern | URLResolver]:
    """Return the URLs of all operations, relative to PREFIX. Call it once: it wraps the views in place."""
    patterns = [pattern for pattern in API.urls[0] if isinstance(pattern, URLPattern) and pattern.name != "api-root"]
    for pattern in patterns:
        pattern.callback = _wrap_view(pattern.callback)
    return [*patterns]


API = _build_api()
