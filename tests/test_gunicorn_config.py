"""Log lines of gunicorn: JSON if chosen, and never an address with a token."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from tests.environment import VAR_FOLDER
from tests.wait import wait_until
from toolbench.installation import ROOT


def test_gunicorn_config_writes_json_lines_without_addresses(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    command = [sys.executable, "-m", "gunicorn", "tests.test_gunicorn_config:answer", "--bind", f"127.0.0.1:{port}"]
    command += ["--config", "python:toolbench.gunicorn_config", "--no-control-socket"]
    environment = {**os.environ, "TOOLBENCH_LOG_FORMAT": "json", "TOOLBENCH_VAR": str(VAR_FOLDER)}
    with log.open("wb") as output, subprocess.Popen(command, cwd=ROOT, env=environment, stderr=output) as server:
        try:
            wait_until(lambda: b"Listening at" in log.read_bytes())
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                client.sendall(b"GET /sign-in/secret-token/ HTTP/1.0\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.0 204")
        finally:
            server.terminate()
            server.wait(30)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert {line["logger"] for line in lines} == {"gunicorn.error"}
    assert "secret-token" not in log.read_text()


def answer(environment: object, start_response: object) -> list[bytes]:
    """WSGI application that gunicorn serves in this test."""
    assert callable(start_response)
    start_response("204 No Content", [])
    return []
