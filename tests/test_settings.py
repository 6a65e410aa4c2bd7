"""Settings that depend on the addresses of the site and of the database."""

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


def read_cookie_names(base: str) -> dict[str, str]:
    """Return the setting of every cookie's name for a site at this address."""
    values = read_settings(TOOLBENCH_BASE=base)
    return {name: value for name, value in values.items() if name.endswith("_COOKIE_NAME")}


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
def test_cookie_names_contain_public_port(environment: dict[str, str], port: int) -> None:
    values = read_settings(**environment)

    assert values["SESSION_COOKIE_NAME"] == f"toolbench_session_{port}"
    assert values["CSRF_COOKIE_NAME"] == f"toolbench_csrf_{port}"


def test_cookie_names_of_two_instances_differ() -> None:
    one, other = read_cookie_names("http://127.0.0.1:8000"), read_cookie_names("http://127.0.0.1:8001")

    assert len(one) == 3
    assert not set(one.values()) & set(other.values())


@pytest.mark.parametrize(
    ("base", "is_secure"), [("https://bench.example.org", True), ("http://bench.example.org", False)]
)
def test_cookies_are_secure_at_https_address(base: str, is_secure: bool) -> None:
    values = read_settings(TOOLBENCH_BASE=base)

    assert (values["SESSION_COOKIE_SECURE"], values["CSRF_COOKIE_SECURE"]) == (is_secure, is_secure)


def test_database_options_have_timeouts_that_url_overrides() -> None:
    values = read_settings(DATABASE_URL="postgresql://ana@db.example.org/bench?connect_timeout=4&sslmode=require")

    options = values["DATABASES"]["default"]["OPTIONS"]
    assert (options["connect_timeout"], options["sslmode"]) == (4, "require")
    assert options["tcp_user_timeout"] == 30_000


def test_database_connection_uses_timeouts(db: None) -> None:
    values = connection.connection.info.get_parameters()

    assert (values["connect_timeout"], values["tcp_user_timeout"]) == ("10", "30000")


def test_csrf_trusted_origins_contain_public_address() -> None:
    values = read_settings(TOOLBENCH_BASE="https://bench.example.org:8443/")

    assert values["BASE_URL"] in values["CSRF_TRUSTED_ORIGINS"]
    assert values["BASE_URL"] == "https://bench.example.org:8443"


@pytest.mark.parametrize("base", ["bench.example.org", "https://bench.example.org:port", "ftp://bench.example.org"])
def test_settings_refuse_invalid_public_address(base: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="TOOLBENCH_BASE must be an address such as"):
        read_settings(TOOLBENCH_BASE=base)


def test_csrf_trusted_origins_contain_the_subdomains_of_a_host() -> None:
    values = read_settings(ALLOWED_HOSTS=".example.org bench.example.com")

    assert {"https://*.example.org", "https://bench.example.com"} <= set(values["CSRF_TRUSTED_ORIGINS"])


def test_settings_take_an_empty_variable_as_missing() -> None:
    values = read_settings(TOOLBENCH_TRACE_DAYS="", TOOLBENCH_KEY_FILE="")

    assert values["TRACE_DAYS"] == 30
    assert values["KEY_FILE"].name == "provider_keys.key"


@pytest.mark.parametrize("text", ["a month", "nan", "inf", "-1"])
def test_settings_name_the_variable_that_is_no_number(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"TOOLBENCH_TRACE_DAYS must be a number from 0 on, not '{text}'"):
        read_settings(TOOLBENCH_TRACE_DAYS=text)
