"""Check of the compose file without containers: each service runs by its command on a host of its own.

`python -m benchmarks.hosts.compose` prints a JSON object with the results; the exit code is 1 if a service does not
answer or trials do not pass on both hosts. PostgreSQL and Valkey come from their wheels; a volume is a folder, and
`python` is the Python that runs the benchmark.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import psycopg
import yaml
from psycopg import sql

from benchmarks.chaos.lab_client import LabClient
from benchmarks.chaos.provider import CountingProvider
from benchmarks.chaos.small_disk import enter_namespace
from benchmarks.hosts.network import Host, HostNetwork, Server
from benchmarks.temporary_servers import TemporaryServers
from toolbench.installation import ROOT
from toolbench.running.binaries import find_postgres_folder, find_valkey_server
from toolbench.running.child_process import ChildSpec
from toolbench.running.database_user import build_confined_command
from toolbench.running.servers import Postgres, Valkey

_ADDRESS_BY_SERVICE = {"postgres": Server.DATABASE.address, "valkey": Server.BROKER.address}
_TRIALS = 20
_WAIT_SECONDS = 300.0
_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")
_NOT_PASSED_QUERY = b"SELECT count(*) FROM lab_trial WHERE run_id = ANY(%s) AND outcome <> 'pass'"
_CLAIMING_HOSTS_QUERY = (
    b"SELECT DISTINCT split_part(split_part(worker, '@', 2), ':', 1) FROM lab_trial WHERE worker <> ''"
)


def read_services(environment: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the services of the compose file, with its variables replaced by those of an environment."""
    text = (ROOT / "docker-compose.yml").read_text()
    filled = _VARIABLE.sub(lambda match: environment.get(match[1]) or match[2], text)
    services: dict[str, dict[str, Any]] = yaml.safe_load(filled)["services"]
    return services


def read_image() -> tuple[dict[str, str], list[str]]:
    """Return the environment and the command of the image."""
    text = (ROOT / "Dockerfile").read_text()
    variables = " ".join(re.findall(r"^ENV (.*)$", text, re.MULTILINE)).split()
    command: list[str] = json.loads(re.findall(r"^CMD (.*)$", text, re.MULTILINE)[-1])
    return dict(variable.split("=", 1) for variable in variables), command


class ComposeStack(TemporaryServers):
    """Services of the compose file in a `with` block: both servers here, the others on hosts."""

    def __init__(self, folder: Path, network: HostNetwork) -> None:
        super().__init__(folder)
        self._network = network
        self._services = read_services(os.environ | {"LOCAL_MODEL": "0"})
        self._image_environment, self._image_command = read_image()

    def start(self) -> None:
        """Start every service after those on which it depends."""
        (self.folder / "data").mkdir()
        self._name_servers()
        self._start_postgres(self._services["postgres"])
        self._start_valkey(self._services["valkey"])
        site, worker = self._network.hosts
        self._start_service("toolbench", site, "simulated is ready")
        self._start_service("worker", worker, " ready.")

    def build_environment(self, name: str) -> dict[str, str]:
        """Return the environment of a service: that of the image, overridden by that of the compose file."""
        inherited = {"PATH", "HOME", "LANG"}
        declared = {
            key: "" if value is None else str(value) for key, value in self._services[name]["environment"].items()
        }
        environment = {key: value for key, value in os.environ.items() if key in inherited}
        environment |= self._image_environment | {key: value for key, value in declared.items() if value}
        assert environment["TOOLBENCH_VAR"] in [volume.split(":")[1] for volume in self._services[name]["volumes"]]
        return environment | {"TOOLBENCH_VAR": str(self.folder / "data")}

    def check_health(self, name: str) -> bool:
        """Run the health check of a service; return True also if its program is not installed."""
        command = self._services[name]["healthcheck"]["test"][1:]
        program = find_postgres_folder() / "bin" / command[0]
        if not program.exists():
            return True
        check = [str(program), *command[1:], "--host", str(self.sockets)]
        return subprocess.run(check, stdout=subprocess.DEVNULL, check=False).returncode == 0

    def query(self, statement: bytes, *parameters: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a statement."""
        with psycopg.connect(self._postgres.build_url(), autocommit=True) as session:
            return session.execute(statement, parameters).fetchall()

    def _name_servers(self) -> None:
        """Map the names of both servers to their addresses, in this mount namespace."""
        hosts = self.folder / "hosts"
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in _ADDRESS_BY_SERVICE.items())]
        hosts.write_text("".join(f"{line}\n" for line in lines))
        subprocess.run(["mount", "--bind", str(hosts), "/etc/hosts"], check=True)

    def _start_postgres(self, service: Mapping[str, Any]) -> None:
        """Start PostgreSQL with the role and the database that its image creates from the environment."""
        self._postgres = Postgres(self.folder / "postgres", self.sockets)
        self._postgres.prepare(self.folder / "postgres.log")
        user, password = service["environment"]["POSTGRES_USER"], service["environment"]["POSTGRES_PASSWORD"]
        with (self.folder / "postgres" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all all scram-sha-256\n")
        command = [*self._postgres.build_command(), *service["command"][1:], "-c", "listen_addresses=*"]
        folder, stop_signal = self.folder / "postgres", self._postgres.stop_signal
        spec = ChildSpec("postgres", command, self._postgres.environment, folder, stop_signal)
        self.start_child(spec, lambda child: self._postgres.is_ready())
        role = sql.SQL("CREATE ROLE {} SUPERUSER LOGIN PASSWORD {}").format(sql.Identifier(user), password)
        database = sql.SQL("CREATE DATABASE {0} OWNER {0}").format(sql.Identifier(user))
        with psycopg.connect(self._postgres.build_url("postgres"), autocommit=True) as session:
            session.execute(role)
            session.execute(database)

    def _start_valkey(self, service: Mapping[str, Any]) -> None:
        """Start Valkey by the service's command, without protected mode, as its image does."""
        program, *options = service["command"]
        assert program == "valkey-server"
        command = [str(find_valkey_server()), *options, "--protected-mode", "no", "--unixsocket"]
        command = build_confined_command([*command, str(self.sockets / "valkey.sock")], death_signal=signal.SIGTERM)
        valkey = Valkey(self.folder / "valkey", self.sockets)
        valkey.prepare()
        spec = ChildSpec("valkey", command, valkey.environment, valkey.working_folder)
        self.start_child(spec, lambda child: valkey.is_ready())

    def _start_service(self, name: str, host: Host, ready: str) -> None:
        program, *arguments = self._services[name].get("command") or self._image_command
        assert program == "python"
        command = build_confined_command(host.build_command([sys.executable, *arguments]), death_signal=signal.SIGTERM)
        spec = ChildSpec(name, command, self.build_environment(name), ROOT, stop_seconds=30.0)
        self.start_child(spec, lambda child: ready in child.log.read_text(errors="replace"))


def _get(address: str, port: str, path: str) -> int:
    """Return the status of an answer, 0 if there is none."""
    connection = http.client.HTTPConnection(address, int(port), timeout=30)
    try:
        connection.request("GET", path, headers={"Host": "127.0.0.1"})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return 0
    finally:
        connection.close()


def _run_trials(stack: ComposeStack, network: HostNetwork, provider: CountingProvider) -> list[str]:
    """Launch runs until both hosts have claimed trials; return them, or none if a trial did not pass."""
    lab = LabClient(stack.build_environment("toolbench"))
    run_ids: list[int] = []
    deadline = time.monotonic() + _WAIT_SECONDS
    used: set[str] = set()
    while used != {host.name for host in network.hosts} and time.monotonic() < deadline:
        base_url = provider.build_base_url(f"run-{len(run_ids)}")
        options = {"trials": _TRIALS, "cap": None, "poisoned": False, "stream": False}
        run_ids.append(lab.ask("launch_counted", base_url=base_url, **options))
        while stack.query(_NOT_PASSED_QUERY, run_ids) != [(0,)] and time.monotonic() < deadline:
            time.sleep(0.5)
        used = {row[0] for row in stack.query(_CLAIMING_HOSTS_QUERY)}
    lab.stop()
    return sorted(used) if stack.query(_NOT_PASSED_QUERY, run_ids) == [(0,)] else []


def _check() -> dict[str, Any]:
    with HostNetwork(2) as network:
        provider = CountingProvider(host=Server.PROVIDER.address)
        provider.start()
        with ComposeStack(Path(tempfile.mkdtemp(prefix="tb-compose-", dir="/tmp")), network) as stack:
            site = network.hosts[0].get_address(Server.DATABASE)
            port = stack.build_environment("toolbench")["PORT"]
            record = {
                "postgres is healthy": stack.check_health("postgres"),
                "page": _get(site, port, "/sign-in/"),
                "gateway": _get(site, str(int(port) + 1), "/health"),
                "hosts that took trials": _run_trials(stack, network, provider),
            }
        provider.stop()
    return record


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that every `with` block ends
    if not enter_namespace("benchmarks.hosts.compose", "--net"):
        print("This machine allows no network namespace (unshare --net --mount).", file=sys.stderr)
        return 2
    record = _check()
    print(json.dumps(record))
    answered = (record["postgres is healthy"], record["page"], record["gateway"]) == (True, 200, 200)
    return 0 if answered and len(record["hosts that took trials"]) == 2 else 1


if __name__ == "__main__":
    sys.exit(main())
