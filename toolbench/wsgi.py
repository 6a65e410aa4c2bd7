"""WSGI application of the site, which gunicorn serves."""

import os

from django.core.wsgi import get_wsgi_application

from toolbench.web.warm_up import prepare_pages

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")

application = get_wsgi_application()
prepare_pages()
