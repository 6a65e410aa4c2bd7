"""Imports between packages, checked on the real modules."""

import subprocess
import sys
from pathlib import Path

from django.conf import settings
from django.test import Client

from toolbench.celery import app
from toolbench.settings import BASE_DIR

_FORBIDDEN = ("django", "celery", "httpx", "aiohttp", "redis", "psycopg")
_IMPORT_ALL = """
import importlib, pkgutil, sys
for name in {forbidden!r}:
    sys.modules[name] = None
for room in ("toolbench.engine", "toolbench.evals"):
    package = importlib.import_module(room)
    for module in pkgutil.walk_packages(package.__path__, room + "."):
        importlib.import_module(module.name)
print(len([name for name in sys.modules if name.startswith("toolbench.")]))
"""


def test_import_contracts_are_kept() -> None:
    linted = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert linted.returncode == 0, linted.stdout


def test_engine_and_evals_import_without_frameworks() -> None:
    imported = subprocess.run(
        [sys.executable, "-c", _IMPORT_ALL.format(forbidden=_FORBIDDEN)],
        cwd=BASE_DIR,
        capture_output=True,
        text=True,
        check=False,
    )
    assert imported.returncode == 0, imported.stderr
    assert int(imported.stdout) > 2


def test_celery_app_uses_configured_broker_after_a_page(client: Client) -> None:
    answer = client.get("/sign-in/")

    assert answer.status_code == 200
    with app.connection_for_write() as connection:
        assert connection.as_uri(include_password=True).split("?")[0] == settings.CELERY_BROKER_URL.split("?")[0]


def test_celery_app_of_new_web_process_uses_configured_broker() -> None:
    script = (
        "import toolbench.wsgi, celery; from django.conf import settings; "
        "assert celery.current_app.conf.broker_url == settings.CELERY_BROKER_URL, celery.current_app.conf.broker_url"
    )
    started = subprocess.run([sys.executable, "-c", script], cwd=BASE_DIR, capture_output=True, text=True, check=False)

    assert started.returncode == 0, started.stderr
