"""The Django app of the pages. It has no tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Configuration of the app."""

    name = "toolbench.web"
