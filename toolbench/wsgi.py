"""WSGI application of the site, which gunicorn serves."""

import os
from importlib import import_module

from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application

from toolbench.garbage_collection import collect_rarely, freeze_loaded_objects

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")

application = get_wsgi_application()
warm_up = import_module("toolbench.web.warm_up")  # needs the models, which are loaded now
warm_up.prepare_pages()


def prepare_application() -> WSGIHandler:
    """Compute the result pages once and return the application.

    gunicorn calls this function in its worker.
    """
    warm_up.prepare_results()
    freeze_loaded_objects()
    collect_rarely()
    return application
