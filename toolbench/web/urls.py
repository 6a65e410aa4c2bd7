"""The addresses of the pages. One URL is one thing, whole or in part."""

from django.urls import URLPattern, URLResolver, path

from toolbench.web.views import first, sign_in, theme

urlpatterns: list[URLPattern | URLResolver] = [
    path("", first.show, name="first"),
    path("sign-in/", sign_in.show, name="sign-in"),
    path("sign-in/<str:token>/", sign_in.follow, name="sign-in-link"),
    path("sign-out/", sign_in.leave, name="sign-out"),
    path("theme/", theme.choose, name="theme"),
]
