"""Addresses of local servers. The process that starts a server writes its address; it is valid on that host only."""

import socket
from collections.abc import Mapping

from django.db.models import QuerySet
from django.db.models.functions import Now

from toolbench.lab.models import ServiceAddress


def register_local_server(name: str, announced: Mapping[str, str]) -> None:
    """Store where the service listens on this host. `announced` has url, key and model."""
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


def withdraw_local_server(name: str) -> None:
    """Delete the address of a server of this host that has ended; no trial is claimed for it until it is registered."""
    ServiceAddress.objects.filter(name=name, host=socket.gethostname()).delete()


def is_registered(address: ServiceAddress) -> bool:
    """Return whether the server at this address is still registered, and not a later one."""
    return _filter_address(address).exists()


def withdraw_address(address: ServiceAddress) -> None:
    """Delete this address; an address that was registered later stays."""
    _filter_address(address).delete()


def _filter_address(address: ServiceAddress) -> QuerySet[ServiceAddress]:
    return ServiceAddress.objects.filter(name=address.name, host=address.host, url=address.url, key=address.key)


def withdraw_host_servers() -> None:
    """Delete all addresses of this host, before its servers are started again."""
    ServiceAddress.objects.filter(host=socket.gethostname()).delete()
