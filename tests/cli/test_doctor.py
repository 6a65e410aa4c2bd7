"""`toolbench doctor`: findings about a machine."""

import socket
import sys
from pathlib import Path

import pytest

from toolbench.cli.doctor import InstallationFinding, check_installation


def _find(findings: list[InstallationFinding], subject: str) -> InstallationFinding:
    return next(finding for finding in findings if finding.subject == subject)


def test_check_installation_of_a_usable_machine_has_no_error(tmp_path: Path, unused_port: int) -> None:
    environment = {"TOOLBENCH_VAR": str(tmp_path / "new"), "PORT": str(unused_port), "LOCAL_MODEL": "0"}

    findings = check_installation(environment)

    assert [finding.line for finding in findings if finding.is_error] == []
    assert sys.version.split()[0] in _find(findings, "Python").sentence
    assert "not running: start it with `make up`" in _find(findings, "instance").sentence
    assert not (tmp_path / "new").exists()


def test_check_installation_with_a_used_port_proposes_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as used_socket:
        port = used_socket.getsockname()[1]
        findings = check_installation({"TOOLBENCH_VAR": str(tmp_path), "PORT": str(port)})

    finding = _find(findings, "port")
    assert finding.is_error
    assert f"make up PORT={port % 65535 + 1}" in finding.sentence


@pytest.mark.parametrize(
    ("variable", "address", "subject"),
    [
        ("DATABASE_URL", "postgresql://me:hush@127.0.0.1:9/bench", "PostgreSQL"),
        ("REDIS_URL", "redis://me:hush@127.0.0.1:9/0", "Valkey"),
        ("REDIS_URL", "nonsense", "Valkey"),
    ],
)
def test_check_installation_with_an_unreachable_server_has_an_error(
    tmp_path: Path, variable: str, address: str, subject: str
) -> None:
    finding = _find(check_installation({"TOOLBENCH_VAR": str(tmp_path), variable: address}), subject)

    assert finding.is_error
    assert variable in finding.sentence
    assert "hush" not in finding.sentence


def test_check_installation_counts_a_killed_instance_as_not_running(tmp_path: Path) -> None:
    (tmp_path / "running.json").write_text('{"base": "http://127.0.0.1:1", "sockets": "", "environment": {}}')

    finding = _find(check_installation({"TOOLBENCH_VAR": str(tmp_path)}), "instance")

    assert "not running" in finding.sentence


def test_check_installation_with_an_unusable_lock_counts_as_not_running(tmp_path: Path) -> None:
    (tmp_path / "up.lock").mkdir()

    finding = _find(check_installation({"TOOLBENCH_VAR": str(tmp_path)}), "instance")

    assert "not running" in finding.sentence


@pytest.fixture
def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port
