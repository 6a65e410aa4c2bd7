"""Celery app of the workers.

A task tells a worker to process trials, a probe, a replay or an import, or to store a heartbeat. Trials, probes,
replays and imports are rows of the database, so a lost task loses no work.
"""

import os
import socket
from typing import Any

from celery import Celery
from celery.signals import setup_logging
from kombu import Queue

from toolbench.log_lines import is_json_format

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")


def keep_logging(**_: Any) -> None:
    """Do nothing. As a receiver of `setup_logging`, it keeps Celery from replacing Django's configuration of logs."""


def build_host_queue(host: str) -> str:
    """Return the name of the queue of the workers on a host."""
    return f"host-{host}"


app = Celery("toolbench")
if is_json_format(os.environ):
    setup_logging.connect(keep_logging)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.task_queues = (Queue("celery"), Queue(build_host_queue(socket.gethostname())))
app.autodiscover_tasks(["toolbench.lab"])
