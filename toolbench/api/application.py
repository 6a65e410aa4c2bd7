"""The API: its operations, its error documents and its OpenAPI description."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import RequestDataTooBig
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
from toolbench.api.masking import mask_answer
from toolbench.api.operations import (
    cases,
    decisions,
    library,
    models,
    providers,
    results,
    runs,
    schedules,
    sharing,
    trials,
)
from toolbench.lab.confirmation import ConfirmationNeededError
from toolbench.lab.errors import InvalidFieldsError

VERSION = "1"
PREFIX = "/api/v1/"
ROUTERS: tuple[tuple[str, Router], ...] = (
    ("Runs", runs.router),
    ("Trials", trials.router),
    ("Results", results.router),
    ("Decisions", decisions.router),
    ("Library", library.router),
    ("Test cases", cases.router),
    ("Providers", providers.router),
    ("Models", models.router),
    ("Schedules", schedules.router),
    ("Sharing and files", sharing.router),
)
HANDLERS: tuple[tuple[type[Exception], Callable[..., Any]], ...] = (
    (problems.ProblemError, problems.handle_problem),
    (Http404, problems.handle_not_found),
    (AuthenticationError, problems.handle_unauthenticated),
    (HttpError, problems.handle_http_error),
    (ValidationError, problems.handle_invalid_request),
    (InvalidFieldsError, problems.handle_invalid_fields),
    (ConfirmationNeededError, problems.handle_confirmation),
    (RequestDataTooBig, problems.handle_large_body),
    (UnreadablePostError, problems.handle_broken_body),
    (Exception, problems.handle_defect),
)
_DESCRIPTION = (
    "Launch, control and read runs, and manage the library, providers and schedules. Send a token, made on the page "
    "Tokens, in the header Authorization: Bearer TOKEN. "
    "Errors are problem documents (RFC 9457)."
)


class LabAPI(NinjaAPI):
    """The API with the scope of each operation and one document for all errors in its description."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return the name of the Python function."""
        return operation.view_func.__name__

    def get_openapi_schema(
        self, *, path_prefix: str | None = None, path_params: dict[str, Any] | None = None
    ) -> OpenAPISchema:
        """Return the OpenAPI document."""
        document = super().get_openapi_schema(path_prefix=path_prefix or PREFIX, path_params=path_params)
        schema = problems.ProblemDocument.model_json_schema(ref_template=REF_TEMPLATE)
        document["components"]["schemas"] |= {**schema.pop("$defs", {}), "ProblemDocument": schema}
        content = {problems.CONTENT_TYPE: {"schema": {"$ref": REF_TEMPLATE.format(model="ProblemDocument")}}}
        scopes = {self.get_openapi_operation_id(found): _find_scope(found) for found in self._iter_operations()}
        for methods in document["paths"].values():
            for details in methods.values():
                details["responses"]["default"] = {"description": "A problem document", "content": content}
                details["x-scope"] = scopes[details["operationId"]]
        return document

    def _iter_operations(self) -> list[Operation]:
        routers = self._get_bound_routers()
        return [found for router in routers for view in router.path_operations.values() for found in view.operations]


def _find_scope(operation: Operation) -> str:
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


def _serve(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Return the view of an address: HEAD as GET, problems for other methods, no secret, ETags for reads."""

    @wraps(view)
    def respond(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "HEAD":
            request.method = "GET"
        response = view(request, *args, **kwargs)
        if isinstance(response, HttpResponseNotAllowed):
            allowed = response.headers["Allow"]
            return problems.build_problem(405, f"Use {allowed} at this address.", headers={"Allow": allowed})
        return add_etag(request, mask_answer(response))

    # Django's middleware knows no token; no cookie allows a change here.
    return login_not_required(csrf_exempt(respond))


def list_urls() -> list[URLPattern | URLResolver]:
    """Return the addresses of all operations, below PREFIX."""
    patterns = [found for found in API.urls[0] if isinstance(found, URLPattern) and found.name != "api-root"]
    for pattern in patterns:
        pattern.callback = _serve(pattern.callback)
    return [*patterns]


API = _build_api()
