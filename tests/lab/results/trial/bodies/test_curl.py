"""Requests as curl commands, run by a real shell against a real server."""

import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import Step
from toolbench.lab.results.trial.bodies.curl import NO_REQUEST, NUL_NOTE, TRUNCATED_NOTE, get_curl, render_curl

SECRET = "sk-live-1234"
HOSTILE_TEXTS = ["it's", '$(touch owned) `id` $HOME \\ "', "@/etc/passwd", "a\nb\r\nc", "", "-X DELETE", "北京 \udcff"]


@pytest.fixture
def server() -> Iterator[tuple[str, list[tuple[str, dict[str, str], bytes]]]]:
    """Serve on this machine; yield the address, and the path, headers and body of each request."""
    requests: list[tuple[str, dict[str, str], bytes]] = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Write nothing."""

    server = HTTPServer(("127.0.0.1", 0), Recorder)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    thread.join()
    server.server_close()


def run_shell(command: bytes) -> None:
    subprocess.run(["sh"], input=command, env={"PATH": "/usr/bin:/bin", "API_KEY": "from-env"}, check=True, timeout=30)


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_curl_command_sends_exactly_the_bytes_of_the_body(server: Any, text: str) -> None:
    url, requests = server
    body = text.encode("utf-8", "surrogateescape")
    run_shell(render_curl(f"{url}/v1/x?a=[1]&b={{2}}", {"X-Text": text.split("\n")[0].strip(), "Host": "evil"}, body))
    ((path, headers, received),) = requests
    assert received == body
    assert path == "/v1/x?a=[1]&b={2}"
    assert headers["host"] == url.removeprefix("http://")


def test_curl_command_sends_a_body_longer_than_an_argument(server: Any) -> None:
    url, requests = server
    body = b"{'" + b"x" * 300_000 + b"%s\\n'}"
    run_shell(render_curl(url, {"Content-Type": "application/json"}, body))
    assert requests[0][2] == body
    assert requests[0][1]["content-type"] == "application/json"


def test_curl_command_reads_the_key_from_the_environment(server: Any) -> None:
    url, requests = server
    headers = {
        "Authorization": f"Bearer {SECRET}",
        "x-api-key": f"{SECRET} with a blank",
        "API-Key": "************",
        "X-Goog-Api-Key": SECRET,
        "X-Org": "********",
    }
    command = render_curl(url, headers, b"{}")
    assert SECRET.encode() not in command
    run_shell(command)
    sent_headers = requests[0][1]
    assert sent_headers["authorization"] == "Bearer from-env"
    assert {sent_headers[name] for name in ("x-api-key", "api-key", "x-goog-api-key")} == {"from-env"}
    assert sent_headers["x-org"] == "********"


def test_render_curl_omits_invalid_header_names() -> None:
    command = render_curl("https://example.test/", {"a b": "1", "@file": "2", "x\n": "3", "ok": ""}, b"{}")
    assert command == b"curl -g https://example.test/ \\\n  -H 'ok;' \\\n  --data-raw '{}'"


def make_request_step(**fields: Any) -> Step:
    trial = make_trial(make_cell(make_config(make_run())))
    facts = {"request_headers": {"Authorization": "Bearer ********"}}
    bodies = {"request": fields.pop("request", b"{}"), "facts": facts}
    return make_step(trial, url="https://example.test/v1/chat", bodies=bodies, **fields)


@pytest.mark.django_db
def test_get_curl_has_url_headers_and_body_of_the_step() -> None:
    lines = get_curl(make_request_step(request=b'{"model": "m"}').pk).decode().splitlines()
    assert lines == [
        "curl -g https://example.test/v1/chat \\",
        "  -H 'Authorization: Bearer '\"$API_KEY\" \\",
        '  --data-raw \'{"model": "m"}\'',
    ]


@pytest.mark.django_db
def test_get_curl_notes_truncated_bodies_nul_bytes_and_no_request() -> None:
    truncated = get_curl(make_request_step(body_cut=True, request_bytes=99, request=b"a\0b").pk).decode()
    assert truncated.startswith(TRUNCATED_NOTE + NUL_NOTE)
    assert "--data-raw ab" in truncated
    trial = make_trial(make_cell(make_config(make_run())))
    removed = make_request_step(request=b"", request_bytes=99)
    for step in (make_step(trial), make_step(trial, kind="tool", url="https://example.test/"), removed):
        assert get_curl(step.pk).decode() == NO_REQUEST


@pytest.mark.django_db
def test_get_curl_of_a_deleted_run_raises_does_not_exist() -> None:
    step = make_request_step()
    step.trial.run.deleted_at = step.trial.queued_at
    step.trial.run.save()
    with pytest.raises(Step.DoesNotExist):
        get_curl(step.pk)
