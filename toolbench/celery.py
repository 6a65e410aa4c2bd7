"""Celery app of the workers.

Its tasks notify workers and run periodic work. All work is stored in the database, so a lost task loses no work.
"""

import os
from typing import Any

from celery import Celery
from celery.signals import setup_logging

from toolbench.log_lines import is_json_format

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")


def keep_logging(**_: Any) -> None:
    """Do nothing: Celery configures no logs of its own where this is connected, so Django's configuration stays."""


app = Celery("toolbench")
if is_json_format(os.environ):
    setup_logging.connect(keep_logging)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["toolbench.lab"])
