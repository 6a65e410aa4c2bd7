"""The wheel in an empty environment: home page, doctor, `toolbench eval`, and an answer of the gateway."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.wait import wait_until
from toolbench.installation import ROOT

pytestmark = pytest.mark.long

PATIENCE_SECONDS = 600
INSTALL_SECONDS = 900
ASK_GATEWAY = """
from django.contrib.auth.models import User
from toolbench.lab.accounts.tokens import create_api_token
from toolbench.lab.models import Model
from toolbench.lab.serving.aliases import AliasChoice, save_alias
owner = User.objects.filter(is_superuser=True).first()
model = Model.objects.filter(name="reliable-95").first()
save_alias(AliasChoice("weather", model.pk), owner=owner)
print(create_api_token(owner, "test", ("serve",), None)[1])
"""


@dataclass(frozen=True)
class WheelInstallation:
    """An environment with the wheel, and the folders of a user who has no checkout."""

    wheel: Path
    program: Path
    home: Path
    port: int

    @property
    def environment(self) -> dict[str, str]:
        own_names = ("TOOLBENCH", "DJANGO", "DATABASE_URL", "REDIS_URL", "PYTHON", "LOCAL_MODEL", "PORT", "HOST")
        variables = {name: value for name, value in os.environ.items() if not name.startswith(own_names)}
        return {**variables, "XDG_DATA_HOME": str(self.home / "data"), "PORT": str(self.port)}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [str(self.program), *arguments]
        return subprocess.run(
            command,
            cwd=self.home,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_SECONDS,
        )


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> WheelInstallation:
    folder = tmp_path_factory.mktemp("wheel")
    _run_checked(sys.executable, "-m", "pip", "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT))
    (wheel,) = folder.glob("toolbench-*.whl")
    _run_checked(sys.executable, "-m", "venv", str(folder / "venv"))
    constraints = folder / "constraints.txt"
    pinned = re.findall(r"^\w.*(?= \\$)", (ROOT / "requirements/run.txt").read_text(), re.MULTILINE)
    constraints.write_text("\n".join(pinned))
    python = str(folder / "venv/bin/python")
    _run_checked(python, "-m", "pip", "install", "--no-compile", "--constraint", str(constraints), str(wheel))
    home = folder / "home of a user"
    home.mkdir()
    return WheelInstallation(wheel, folder / "venv/bin/toolbench", home, _find_two_free_ports())


@pytest.fixture(scope="module")
def up_output(installation: WheelInstallation) -> Iterator[str]:
    """Run `toolbench up` and yield what it printed."""
    out = installation.home / "up.txt"
    with out.open("wb") as output:
        command = [str(installation.program), "up", "--no-local-model"]
        process = subprocess.Popen(
            command, cwd=installation.home, env=installation.environment, stdout=output, stderr=output, text=True
        )

    def has_ready_lines() -> bool:
        printed = out.read_text()
        assert process.poll() is None, printed
        return "gateway is ready" in printed and "simulated is ready" in printed

    wait_until(has_ready_lines, every=0.2)
    yield out.read_text()
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_SECONDS) == 0


def test_wheel_contains_every_data_file_page_and_style(installation: WheelInstallation) -> None:
    packed_names = set(zipfile.ZipFile(installation.wheel).namelist())
    repository_names = subprocess.run(
        ["git", "ls-files", "toolbench", "templates", "static", "docs/glossary.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    expected = {name if name.startswith("toolbench/") else f"toolbench/{name}" for name in repository_names}

    assert len(expected) > 1000
    assert expected - packed_names == set()
    assert {name.partition("/")[0] for name in packed_names if ".dist-info/" not in name} == {"toolbench"}


def test_wheel_home_page_opens_with_its_style(installation: WheelInstallation, up_output: str) -> None:
    (link,) = re.findall(r"http://\S+/sign-in/\S+", up_output)
    with httpx.Client(follow_redirects=True) as browser:
        page = browser.get(link)
        style = browser.get(f"http://127.0.0.1:{installation.port}/static/css/base.css")

    assert (page.status_code, page.url.path) == (200, "/")
    assert "<title>Start · Toolbench</title>" in page.text
    assert style.text == (ROOT / "static/css/base.css").read_text()


def test_wheel_keeps_data_in_the_folder_of_the_user(installation: WheelInstallation, up_output: str) -> None:
    data = installation.home / "data/toolbench"

    assert f"data stays in {data}." in up_output
    assert (data / "running.json").exists()
    assert [path for path in installation.program.parents[1].rglob("var") if path.is_dir()] == []


def test_wheel_doctor_finds_the_instance(installation: WheelInstallation, up_output: str) -> None:
    wait_until(lambda: installation.run("doctor").returncode == 0, every=1)
    result = installation.run("doctor")

    assert result.returncode == 0, result.stdout
    assert f"runs at http://127.0.0.1:{installation.port}/" in result.stdout
    assert "sent a heartbeat in the last minute" in result.stdout


def test_wheel_eval_runs_a_simulated_model(installation: WheelInstallation, up_output: str) -> None:
    result = installation.run(
        "eval", "--provider", "simulated", "--models", "reliable-95", "--scenarios", "simple", "--out", "report"
    )

    assert result.returncode == 0, result.stderr
    assert "answered success" in result.stdout
    assert json.loads((installation.home / "report/summary.json").read_text())


def test_wheel_gateway_answers_a_request_with_tools(installation: WheelInstallation, up_output: str) -> None:
    token = installation.run("manage", "shell", "--no-imports", "-c", ASK_GATEWAY).stdout.strip()
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    body = {
        "model": "weather",
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}],
        "tools": [{"type": "function", "function": {"name": "get_weather", "parameters": schema}}],
    }
    headers = {"Authorization": f"Bearer {token}"}
    address = f"http://127.0.0.1:{installation.port + 1}/v1/chat/completions"

    response = httpx.post(address, json=body, headers=headers, timeout=60)

    assert response.status_code == 200, response.text
    assert response.json()["choices"][0]["message"]
    assert response.headers["x-toolbench-alias"] == "weather"


def _run_checked(*command: str) -> None:
    result = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS)
    assert result.returncode == 0, result.stderr[-2000:]


def _find_two_free_ports() -> int:
    """Return a port of which the next one is free, too: the gateway gets that one."""
    for port in range(21_000 + os.getpid() % 9_000, 32_000, 2):
        with (
            suppress(OSError),
            socket.create_server(("127.0.0.1", port)),
            socket.create_server(("127.0.0.1", port + 1)),
        ):
            return port
    raise AssertionError("no port is free")
