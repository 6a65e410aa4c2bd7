"""The addresses of the pages. One URL is one thing, whole or in part."""

from django.urls import URLPattern, URLResolver, path, re_path

from toolbench.web.views import first, latency, matrix, sign_in, theme, trials

urlpatterns: list[URLPattern | URLResolver] = [
    path("", first.show, name="first"),
    path("matrix/", matrix.show, name="matrix"),
    re_path(r"^matrix/export\.(?P<kind>csv|json|md)$", matrix.export, name="matrix-export"),
    path("sign-in/", sign_in.show, name="sign-in"),
    path("sign-in/<str:token>/", sign_in.follow, name="sign-in-link"),
    path("sign-out/", sign_in.leave, name="sign-out"),
    path("trials/", trials.list, name="trials"),
    path("trials/<int:trial_id>/", trials.show, name="trial"),
    path("trials/<int:trial_id>/note/", trials.note, name="trial-note"),
    path("latency/", latency.show, name="latency"),
    path("theme/", theme.choose, name="theme"),
]
