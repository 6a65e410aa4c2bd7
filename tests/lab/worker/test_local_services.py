"""The addresses of local servers."""

import io
import sys

import pytest
from django.core.management import call_command

from toolbench.lab.models import ServiceAddress
from toolbench.lab.worker.local_services import (
    is_registered,
    register_local_server,
    withdraw_address,
    withdraw_host_servers,
)

pytestmark = pytest.mark.django_db


def test_a_server_that_comes_back_elsewhere_has_one_address() -> None:
    register_local_server("simulated", {"url": "http://127.0.0.1:1", "key": "a", "model": "m"})
    register_local_server("simulated", {"url": "http://127.0.0.1:2"})

    assert list(ServiceAddress.objects.values_list("name", "url", "key")) == [("simulated", "http://127.0.0.1:2", "")]


def test_a_start_forgets_this_hosts_addresses_only() -> None:
    register_local_server("simulated", {"url": "http://127.0.0.1:1"})
    register_local_server("elsewhere", {"url": "http://127.0.0.1:2"})
    ServiceAddress.objects.filter(name="elsewhere").update(host="another")

    withdraw_host_servers()

    assert [row.name for row in ServiceAddress.objects.all()] == ["elsewhere"]


def test_register_service_gone_withdraws_this_hosts_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"url": "http://127.0.0.1:1"}\n'))
    call_command("register_service", "simulated")
    register_local_server("elsewhere", {"url": "http://127.0.0.1:2"})
    ServiceAddress.objects.filter(name="elsewhere").update(host="another")

    call_command("register_service", "simulated", gone=True)
    call_command("register_service", "elsewhere", gone=True)

    assert [row.name for row in ServiceAddress.objects.all()] == ["elsewhere"]


def test_withdraw_address_leaves_the_one_registered_after() -> None:
    register_local_server("simulated", {"url": "http://127.0.0.1:1", "key": "old"})
    dead = ServiceAddress.objects.get()
    register_local_server("simulated", {"url": "http://127.0.0.1:2", "key": "new"})

    withdraw_address(dead)

    assert not is_registered(dead)
    assert is_registered(ServiceAddress.objects.get())
