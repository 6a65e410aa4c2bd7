"""The WSGI entry point."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")

application = get_wsgi_application()
get_resolver().url_patterns  # noqa: B018 (imports all pages now, which the first request would wait for)
