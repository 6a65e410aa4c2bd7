"""WSGI application of the site, which gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")

application = get_wsgi_application()
get_resolver().url_patterns  # noqa: B018 (imports all pages, so that the first request does not wait for the imports)
