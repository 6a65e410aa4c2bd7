"""The Celery app: it wakes, distributes and ticks; rows are the truth."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")

app = Celery("toolbench")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["toolbench.lab"])
