"""Django settings, most of them from environment variables.

DATABASE_URL and REDIS_URL default to the servers of a running `make up`.
"""

import json
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dj_database_url
from csp.constants import NONE, SELF, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured

from toolbench.installation import ASSETS, get_var_folder
from toolbench.log_lines import build_logging_config
from toolbench.private_files import create_once

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = get_var_folder()


def _read_number(name: str, default: float) -> float:
    """Return the number in an environment variable, or the default if the variable is missing or empty.

    Raises:
        ImproperlyConfigured: the value is not a number, or it is negative or infinite.
    """
    text = os.environ.get(name) or default
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ImproperlyConfigured(f"{name} must be a number from 0 on, not {text!r}.")
    return number


def _list_origins(hosts: Iterable[str]) -> list[str]:
    """Return the HTTP and HTTPS origins of allowed hosts, "*.example.org" for ".example.org"; skip the host "*"."""
    patterns = [f"*{host}" if host.startswith(".") else host for host in hosts if host != "*"]
    return [f"{scheme}://{pattern}" for pattern in patterns for scheme in ("http", "https")]


def _build_broker_url(redis_url: str) -> str:
    """Return unix://PATH?db=N of redis-py as redis+socket://PATH?virtual_host=N of kombu; keep any other URL."""
    if not redis_url.startswith("unix://"):
        return redis_url
    return redis_url.replace("unix://", "redis+socket://", 1).replace("?db=", "?virtual_host=", 1)


def _read_server_url(name: str, default: str) -> str:
    """Return an address from the environment, else from a running `make up` of this installation, else the default."""
    return os.environ.get(name) or _read_running_state().get(name, default)


def _read_running_state() -> dict[str, str]:
    """Return the environment variables that `make up` stored, or {} if their file is missing or cannot be read.

    `make up` deletes the file when it stops, but not when it is killed.
    """
    try:
        return dict(json.loads((VAR_DIR / "running.json").read_text())["environment"])
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _read_secret_key() -> str:
    """Return Django's secret key from the environment, else from a private file in var/, which is created once."""
    if key := os.environ.get("SECRET_KEY"):
        return key
    return create_once(VAR_DIR / "secret_key", lambda: os.urandom(32).hex().encode()).decode()


def _parse_public_port(address: str) -> int:
    """Return the port of the site's address, or the default port of its scheme.

    Raises:
        ImproperlyConfigured: the port is invalid, or it is missing and the scheme is neither http nor https.
    """
    try:
        parts = urlsplit(address)
        return parts.port or {"http": 80, "https": 443}[parts.scheme]
    except (ValueError, KeyError):
        raise ImproperlyConfigured(
            f"TOOLBENCH_BASE must be an address such as https://bench.example.org and PORT a number: {address!r}."
        ) from None


def _build_logging() -> dict[str, Any]:
    """Return the logging configuration.

    Raises:
        ImproperlyConfigured: a variable has an unknown value.
    """
    try:
        return build_logging_config(os.environ)
    except ValueError as error:
        raise ImproperlyConfigured(str(error)) from None


SECRET_KEY = _read_secret_key()
# The address that browsers use for the site.
BASE_URL = _read_server_url("TOOLBENCH_BASE", f"http://127.0.0.1:{os.environ.get('PORT') or 8000}").rstrip("/")
PUBLIC_PORT = _parse_public_port(BASE_URL)
DEBUG = False
ALLOWED_HOSTS = [*os.environ.get("ALLOWED_HOSTS", "").replace(",", " ").split(), "127.0.0.1", "localhost", "[::1]"]
CSRF_TRUSTED_ORIGINS = [*_list_origins(ALLOWED_HOSTS), BASE_URL]  # only BASE_URL may have a port

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "csp",
    "django_htmx",
    "template_partials",
    "toolbench.lab",
    "toolbench.web",
]
MIDDLEWARE = [
    "toolbench.web.middleware.identify_request",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "toolbench.web.middleware.SignInMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "toolbench.web.roles.RoleMiddleware",
    "toolbench.web.middleware.explain_not_allowed",
    "toolbench.web.middleware.MissingRowMiddleware",
]
ROOT_URLCONF = "toolbench.urls"
WSGI_APPLICATION = "toolbench.wsgi.application"
LOGIN_URL = "sign-in"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ASSETS / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "toolbench.web.context_processors.frame",
                "toolbench.web.context_processors.saved",
                "toolbench.web.context_processors.entered_values",
            ],
        },
    }
]
# A connection to a database server that stops answering fails after about 30 s instead of hours. Parameters of
# DATABASE_URL replace these values. Only `connect_timeout` applies to Unix sockets.
_NETWORK_TIMEOUTS = {
    "connect_timeout": 10,
    "tcp_user_timeout": 30_000,  # milliseconds for which sent data may stay unacknowledged
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
_DATABASE: dict[str, Any] = dict(
    dj_database_url.parse(
        _read_server_url("DATABASE_URL", "postgresql:///toolbench"), conn_max_age=60, conn_health_checks=True
    )
)
DATABASES = {"default": _DATABASE | {"OPTIONS": _NETWORK_TIMEOUTS | _DATABASE.get("OPTIONS", {})}}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [ASSETS / "static"]
# `make up` sets STATIC_COLLECTED after it has collected and compressed the static files. Without it, they are served
# from their source folders.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = os.environ.get("STATIC_COLLECTED") != "1"

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "style-src-attr": [UNSAFE_INLINE],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
# The supervisor writes each process's standard error to a file in var/log/.
LOGGING = _build_logging()
# Browsers send a host's cookies to all its ports. The port in the names separates the cookies of two installations.
SESSION_COOKIE_NAME = f"toolbench_session_{PUBLIC_PORT}"
CSRF_COOKIE_NAME = f"toolbench_csrf_{PUBLIC_PORT}"
NEXT_PAGE_COOKIE_NAME = f"toolbench_wanted_{PUBLIC_PORT}"  # the page that was requested before the sign-in
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"  # needs no further cookie
# At an HTTPS address, browsers send these cookies only over HTTPS.
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = BASE_URL.startswith("https://")
SESSION_COOKIE_AGE = 60 * 60 * 24 * 30
# With Strict, a browser that follows a sign-in link from another site would not send the new session's cookie.
SESSION_COOKIE_SAMESITE = "Lax"

REDIS_URL = _read_server_url("REDIS_URL", "redis://127.0.0.1:6379/0")
CELERY_BROKER_URL = _build_broker_url(REDIS_URL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = False
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"

# File of the key that encrypts the secrets of providers. It is created with mode 0600 when a secret is first stored.
KEY_FILE = Path(os.environ.get("TOOLBENCH_KEY_FILE") or VAR_DIR / "provider_keys.key")

# Tests set the next three variables to 3, 0.5 and 0.5.
LEASE_SECONDS = _read_number("TOOLBENCH_LEASE_SECONDS", 60)  # validity of a claim without a renewal
HEARTBEAT_SECONDS = _read_number("TOOLBENCH_HEARTBEAT_SECONDS", 5)  # between two heartbeats
SWEEP_SECONDS = _read_number("TOOLBENCH_SWEEP_SECONDS", 10)  # between two sweeps
SESSION_SECONDS = _read_number("TOOLBENCH_SHIFT_SECONDS", 90)  # how long a worker session claims trials
CONNECT_SECONDS = _read_number("TOOLBENCH_CONNECT_SECONDS", 10)  # default timeout for connecting to a provider
READ_SECONDS = _read_number("TOOLBENCH_READ_SECONDS", 120)  # default timeout for reading from a provider
DEADLINE_SECONDS = _read_number("TOOLBENCH_DEADLINE_SECONDS", 600)  # default trial deadline
SIGN_IN_HOURS = 24  # how long a sign-in link is valid
# For alerts by e-mail. Without a host, no e-mail is sent.
EMAIL_HOST = os.environ.get("EMAIL_HOST", "")
EMAIL_PORT = int(_read_number("EMAIL_PORT", 587))
EMAIL_HOST_USER = os.environ.get("EMAIL_HOST_USER", "")
EMAIL_HOST_PASSWORD = os.environ.get("EMAIL_HOST_PASSWORD", "")
EMAIL_USE_TLS = os.environ.get("EMAIL_USE_TLS", "1") != "0"
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = os.environ.get("DEFAULT_FROM_EMAIL") or "toolbench@localhost"
TRACE_DAYS = _read_number("TOOLBENCH_TRACE_DAYS", 30)  # age at which gateway traces are deleted; 0 for never
LOCAL_MODEL = os.environ.get("LOCAL_MODEL", "1") != "0"  # whether `make up` serves the local model
CONFIRM_ABOVE_REQUESTS = 200  # up to this number, paid requests to one provider need no confirmation
# File of the MCP servers that users can choose, in the form {"mcpServers": {NAME: {"command": …, "args": […]}}}.
MCP_SERVERS_FILE = Path(os.environ.get("TOOLBENCH_MCP_SERVERS") or VAR_DIR / "mcp_servers.json")
# Limits of the API: reads and changes for each token or signed-in user, and wrong tokens from one IP address.
API_READS_PER_MINUTE = int(_read_number("TOOLBENCH_API_READS_PER_MINUTE", 600))
API_CHANGES_PER_MINUTE = int(_read_number("TOOLBENCH_API_CHANGES_PER_MINUTE", 120))
API_REFUSALS_PER_MINUTE = 30
