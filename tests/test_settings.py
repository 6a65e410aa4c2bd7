"""Settings that depend on addresses: of the site and of the database."""

import os
import runpy
from typing import Any

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection


def read_settings(**environment: str) -> dict[str, Any]:
    """Return the settings as a process with this environment reads them."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TOOLBENCH_BASE", "PORT"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setitem(os.environ, name, value)
        return runpy.run_path(str(settings.BASE_DIR / "toolbench" / "settings.py"))


def cookie_names(base: str) -> dict[str, str]:
    """Return the setting of every cookie's name for a site at this address."""
    told = read_settings(TOOLBENCH_BASE=base)
    return {name: value for name, value in told.items() if name.endswith("_COOKIE_NAME")}


@pytest.mark.parametrize(
    ("environment", "port"),
    [
        ({}, 8000),
        ({"PORT": "9000"}, 9000),
        ({"PORT": "9000", "TOOLBENCH_BASE": "http://127.0.0.1:9001"}, 9001),
        ({"TOOLBENCH_BASE": "https://bench.example.org"}, 443),
        ({"TOOLBENCH_BASE": "http://bench.example.org/"}, 80),
        ({"TOOLBENCH_BASE": "http://[::1]:8002"}, 8002),
    ],
)
def test_cookie_names_carry_the_public_port(environment: dict[str, str], port: int) -> None:
    told = read_settings(**environment)

    assert told["SESSION_COOKIE_NAME"] == f"toolbench_session_{port}"
    assert told["CSRF_COOKIE_NAME"] == f"toolbench_csrf_{port}"


def test_two_instances_on_one_host_share_no_cookie() -> None:
    one, other = cookie_names("http://127.0.0.1:8000"), cookie_names("http://127.0.0.1:8001")

    assert len(one) == 3
    assert not set(one.values()) & set(other.values())


def test_database_connections_have_timeouts_that_the_address_replaces() -> None:
    told = read_settings(DATABASE_URL="postgresql://ana@db.example.org/bench?connect_timeout=4&sslmode=require")

    options = told["DATABASES"]["default"]["OPTIONS"]
    assert (options["connect_timeout"], options["sslmode"]) == (4, "require")
    assert options["tcp_user_timeout"] == 30_000


def test_database_accepts_the_timeouts(db: None) -> None:
    told = connection.connection.info.get_parameters()

    assert (told["connect_timeout"], told["tcp_user_timeout"]) == ("10", "30000")


def test_forms_are_taken_from_the_public_address_with_its_port() -> None:
    told = read_settings(TOOLBENCH_BASE="https://bench.example.org:8443/")

    assert told["BASE_URL"] in told["CSRF_TRUSTED_ORIGINS"]
    assert told["BASE_URL"] == "https://bench.example.org:8443"


@pytest.mark.parametrize("base", ["bench.example.org", "https://bench.example.org:port", "ftp://bench.example.org"])
def test_unusable_public_address_gets_a_sentence(base: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="TOOLBENCH_BASE must be an address such as"):
        read_settings(TOOLBENCH_BASE=base)
