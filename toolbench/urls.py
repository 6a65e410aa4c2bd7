"""URL patterns of the site: the API below /api/v1/, the pages below /."""

from django.urls import URLPattern, URLResolver, include, path

handler400 = "toolbench.web.views.errors.bad_request"
handler404 = "toolbench.web.views.errors.page_not_found"
handler500 = "toolbench.web.views.errors.server_error"

urlpatterns: list[URLPattern | URLResolver] = [
    path("api/v1/", include("toolbench.api.urls")),
    path("", include("toolbench.web.urls")),
]
