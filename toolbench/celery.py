"""Celery app of the workers.

Its tasks notify workers and run periodic work. All work is stored in the database, so a lost task loses no work.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")

app = Celery("toolbench")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["toolbench.lab"])
