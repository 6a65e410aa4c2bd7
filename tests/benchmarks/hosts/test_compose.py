"""Compose file and image, read without starting a container."""

from urllib.parse import urlsplit

import pytest

from benchmarks.hosts.compose import read_image, read_services
from toolbench.running.__main__ import VERBS
from toolbench.running.servers import build_memory_settings

PROCESSES = ("toolbench", "worker")


@pytest.mark.parametrize("name", PROCESSES)
def test_compose_process_has_addresses_of_servers_and_data(name: str) -> None:
    services = read_services({})
    environment, volumes = services[name]["environment"], services[name]["volumes"]
    hosts = [urlsplit(environment[variable]).hostname for variable in ("DATABASE_URL", "REDIS_URL")]
    assert hosts == ["postgres", "valkey"]
    assert set(services[name]["depends_on"]) <= services.keys()
    assert [volume.partition(":")[2] for volume in volumes] == [read_image()[0]["TOOLBENCH_VAR"]]


@pytest.mark.parametrize("name", PROCESSES)
def test_compose_process_runs_existing_verb(name: str) -> None:
    command = read_services({})[name].get("command") or read_image()[1]
    assert command[:3] == ["python", "-m", "toolbench.running"]
    assert command[3] in VERBS


def test_compose_variables_replace_defaults() -> None:
    assert read_services({})["toolbench"]["environment"]["PORT"] == 8000
    assert read_services({"PORT": "9000"})["toolbench"]["ports"][0] == "127.0.0.1:9000:9000"


def test_compose_database_url_has_role_of_server() -> None:
    services = read_services({})
    url, server = urlsplit(services["toolbench"]["environment"]["DATABASE_URL"]), services["postgres"]["environment"]
    assert (url.username, url.password) == (server["POSTGRES_USER"], server["POSTGRES_PASSWORD"])


def test_compose_database_has_memory_settings_of_machine_with_2_gb() -> None:
    program, *options = read_services({})["postgres"]["command"]
    settings = dict(option.split("=") for option in options if option != "-c")
    assert (program, settings) == ("postgres", build_memory_settings(2048))
