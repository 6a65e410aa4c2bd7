"""The pages. No tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "toolbench.web"
