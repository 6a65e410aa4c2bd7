"""The addresses of local servers: written by whoever starts them, good on their own host only."""

import socket
from collections.abc import Mapping

from django.db.models.functions import Now

from toolbench.lab.models import ServiceAddress


def register(name: str, announced: Mapping[str, str]) -> None:
    """Notes where the service listens now, on this host. `announced` has url, key and model."""
    ServiceAddress.objects.update_or_create(
        name=name,
        defaults={
            "host": socket.gethostname(),
            "url": announced["url"],
            "key": announced.get("key", ""),
            "model": announced.get("model", ""),
            "ready_at": Now(),
        },
    )


def forget_this_host() -> None:
    """Forgets what this host served before it was started anew."""
    ServiceAddress.objects.filter(host=socket.gethostname()).delete()
