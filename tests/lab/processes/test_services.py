"""The addresses of local servers."""

import pytest

from toolbench.lab.models import ServiceAddress
from toolbench.lab.processes.services import forget_this_host, register

pytestmark = pytest.mark.django_db


def test_a_server_that_comes_back_elsewhere_has_one_address() -> None:
    register("simulated", {"url": "http://127.0.0.1:1", "key": "a", "model": "m"})
    register("simulated", {"url": "http://127.0.0.1:2"})

    assert list(ServiceAddress.objects.values_list("name", "url", "key")) == [("simulated", "http://127.0.0.1:2", "")]


def test_a_start_forgets_this_hosts_addresses_only() -> None:
    register("simulated", {"url": "http://127.0.0.1:1"})
    register("elsewhere", {"url": "http://127.0.0.1:2"})
    ServiceAddress.objects.filter(name="elsewhere").update(host="another")

    forget_this_host()

    assert [row.name for row in ServiceAddress.objects.all()] == ["elsewhere"]
