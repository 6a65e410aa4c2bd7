"""The addresses of the pages. One URL is one thing, whole or in part."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
