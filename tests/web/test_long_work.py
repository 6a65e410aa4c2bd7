"""Pages during a long import or export: they still answer."""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from urllib.parse import urlsplit

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection, transaction
from django.test import Client
from pytest_django.live_server_helper import LiveServer

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from tests.lab.conftest import RunInThread, elsewhere, wait_for_blocked_sessions
from tests.lab.interchange.inspect_ai.test_log import HEADER, make_sample
from tests.wait import wait_until
from toolbench.lab.interchange.queue import get_import
from toolbench.lab.models import Replay, Run
from toolbench.web.forms import imports

__all__ = ["elsewhere"]  # a fixture of the lab's tests

pytestmark = pytest.mark.django_db(transaction=True)
PAGES = ("/runs/", "/imported/", "/trials/", "/health/live")


@contextmanager
def open_response(server: LiveServer, client: Client, path: str) -> Iterator[HTTPResponse]:
    address = urlsplit(server.url)
    http = HTTPConnection(str(address.hostname), address.port, timeout=60)
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    http.request("GET", path, headers={"Cookie": cookies})
    try:
        yield http.getresponse()
    finally:
        http.close()


def get_statuses(server: LiveServer, client: Client) -> list[int]:
    answers = []
    for path in PAGES:
        with open_response(server, client, path) as response:
            answers.append(response.status)
            response.read()
    return answers


def upload_log(client: Client, log: bytes) -> int:
    """Upload a log and return the id of its import. It must run in a thread other than the one that holds the lock."""
    client.post("/imported/new/", {"file": SimpleUploadedFile("log.json", log)})
    return Replay.objects.get().pk


@pytest.mark.usefixtures("worker")
def test_pages_answer_while_worker_imports(
    live_server: LiveServer, owner_client: Client, elsewhere: RunInThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker waits during the import for a table lock that this test holds."""
    monkeypatch.setattr(imports, "MAX_IMMEDIATE_BYTES", 10)
    log = json.dumps(HEADER | {"samples": [make_sample(number) for number in range(300)]}).encode()
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("LOCK TABLE lab_step IN SHARE MODE")
        row_id = elsewhere(upload_log, owner_client, log).result()
        wait_for_blocked_sessions()
        assert get_statuses(live_server, owner_client) == [200] * len(PAGES)
        assert get_import(row_id).is_open
    wait_until(lambda: not get_import(row_id).is_open)
    assert Run.objects.get(imported=True).trial_count == 300


def test_pages_answer_while_bundle_is_downloaded(live_server: LiveServer, owner_client: Client) -> None:
    """The bundle is larger than the buffers of the connection, so the server waits during the download."""
    run = make_run()
    cell = make_cell(make_config(run))
    for _ in range(40):
        step = make_step(make_trial(cell, "pass"), bodies={"request": b"", "response": b"", "facts": {}})
        step.body.response = os.urandom(1 << 20)
        step.body.save()
    with open_response(live_server, owner_client, f"/runs/{run.pk}/bundle.zip?private=1") as response:
        first = response.read(1000)
        assert get_statuses(live_server, owner_client) == [200] * len(PAGES)
        rest = response.read()
    with zipfile.ZipFile(io.BytesIO(first + rest)) as archive:
        assert archive.testzip() is None
        assert sum(name.startswith("evidence/trials/") for name in archive.namelist()) == 40
