"""URLs of the API's operations, its OpenAPI document and its documentation page."""

from django.urls import URLPattern, URLResolver, path, re_path

from toolbench.api import documentation
from toolbench.api.application import list_urls

app_name = "api"
urlpatterns: list[URLPattern | URLResolver] = [
    path("openapi.json", documentation.get_document, name="openapi"),
    path("docs", documentation.show, name="docs"),
    *list_urls(),
    re_path(r"^", documentation.answer_unknown, name="unknown"),
]
