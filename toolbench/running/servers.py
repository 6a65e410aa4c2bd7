"""PostgreSQL and Valkey from installed packages: preparation, start command and readiness check."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql

from toolbench.installation import build_command
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
_MEGABYTE = 1_048_576
# Smallest and largest shared_buffers; between them, it is an eighth of the memory. The smallest is PostgreSQL's
# default, and the indexes for lists of a million trials are larger than that.
_BUFFERS_MB = (128, 512)
_BUFFERS_DIVISOR = 8
# Smallest and largest work_mem; between them, it is 1/256 of the memory. The smallest is PostgreSQL's default. A larger
# sort is written to a temporary file, and so is a hash table of more than twice this size. Each connection may use this
# memory several times at once.
_WORK_MB = (4, 32)
_WORK_DIVISOR = 256
# Memory for hash tables that PostgreSQL's parallel workers share. Without this setting, the tables are in /dev/shm,
# which has 64 MB in a container by default.
_PARALLEL_MEMORY = "256MB"
_CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def check_database(url: str) -> None:
    """Check that the database of DATABASE_URL accepts a connection.

    Raises:
        RunnerError: the database accepts none; the message does not contain the password.
    """
    try:
        psycopg.connect(url, connect_timeout=5).close()
    except psycopg.Error as error:
        raise RunnerError(
            f"The database of DATABASE_URL ({_describe_url(url)}) {_describe_refusal(str(error))}: "
            "correct the address, start that server, or leave DATABASE_URL out to use the database of "
            f"`{build_command('up')}`."
        ) from error


def _describe_url(url: str) -> str:
    """Return host, port and database of a URL, without the user and the password; "no address" if it is no URL."""
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
    descriptions = (text for phrase, text in description_by_phrase.items() if phrase in error_text)
    return next(descriptions, "does not answer")


def build_memory_settings(memory_mb: int) -> Mapping[str, str]:
    """Return PostgreSQL's settings for a machine with so many megabytes of memory."""
    buffers = _clamp(memory_mb // _BUFFERS_DIVISOR, *_BUFFERS_MB)
    work = _clamp(memory_mb // _WORK_DIVISOR, *_WORK_MB)
    return {"shared_buffers": f"{buffers}MB", "work_mem": f"{work}MB", "min_dynamic_shared_memory": _PARALLEL_MEMORY}


def read_memory_mb(limits: tuple[Path, ...] = _CGROUP_LIMITS) -> int:
    """Return the memory of this machine, or the limit of the container if that is smaller, in megabytes.

    Args:
        limits: files that may contain the limit of the container in bytes, or "max" for none.
    """
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min(machine, *map(_read_limit, limits))) // _MEGABYTE


def _read_limit(file: Path) -> float:
    """Return the limit in the file, in bytes; infinity if the file is missing or has no limit."""
    try:
        return float(file.read_text("ascii").strip().replace("max", "inf"))
    except (OSError, ValueError):
        return float("inf")


def _clamp(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


class Postgres:
    """PostgreSQL server on a Unix socket.

    Attributes:
        stop_signal: signal that stops the server without waiting for its clients.
        environment: the complete environment of the server.
    """

    stop_signal = signal.SIGINT
    environment = _BASE_ENVIRONMENT

    def __init__(self, data: Path, sockets: Path, *, is_durable: bool = True) -> None:
        """Find the server's programs and the user as which they run.

        Args:
            data: folder of the data.
            sockets: folder of the socket; its path must be short and without spaces.
            is_durable: False for a faster server that may lose data when the machine crashes; for tests only.

        Raises:
            RunnerError: the package with PostgreSQL is not installed.
        """
        self._data = data
        self._sockets = sockets
        self._is_durable = is_durable
        self._user: ProcessUser = find_unprivileged_user()
        self._programs = ensure_program_reachable(find_postgres_folder(), self._user, program="bin/postgres") / "bin"

    def build_url(self, database: str = "toolbench") -> str:
        """Return the URL of a database."""
        return f"postgresql://postgres@{quote(str(self._sockets), safe='')}/{database}"

    def prepare(self, log: Path) -> None:
        """Create the data folder if it does not exist, and make it usable for the server's user.

        The server's user also becomes the owner of the folder of the socket.

        Args:
            log: file to which the output of initdb is appended.

        Raises:
            RunnerError: initdb failed.
        """
        if not (self._data / "PG_VERSION").exists():
            self._create_data(log)
        ensure_data_reachable(self._data, self._user)
        if self._user.owner:
            os.chown(self._sockets, *self._user.owner)

    def _create_data(self, log: Path) -> None:
        """Create the data in a folder `<name>.new` and rename it, so that an interrupted start leaves no partial data.

        The `.new` folder of an interrupted start is deleted first.
        """
        new_data = self._data.with_name(f"{self._data.name}.new")
        shutil.rmtree(new_data.resolve(), ignore_errors=True)
        new_data.unlink(missing_ok=True)
        new_data.mkdir(mode=0o700, parents=True)
        ensure_data_reachable(new_data, self._user)
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--no-instructions"]
        command = [str(self._programs / "initdb"), "-D", str(new_data.resolve()), *options]
        with log.open("ab") as output:
            command = build_confined_command(command, death_signal=signal.SIGKILL, user=self._user)
            process = subprocess.run(command, stdout=output, stderr=output, env=_BASE_ENVIRONMENT, cwd="/", check=False)
        if process.returncode != 0:
            raise RunnerError(f"PostgreSQL could not make its data folder: see {log}.")
        if new_data.is_symlink():
            self._data.symlink_to(new_data.readlink())
            new_data.unlink()
        else:
            new_data.rename(self._data)

    def build_command(self) -> list[str]:
        """Return the command that starts the server."""
        settings = {"unix_socket_directories": str(self._sockets), "listen_addresses": "", "max_connections": "200"}
        settings |= {"unix_socket_permissions": "0700", "log_timezone": "UTC", "timezone": "UTC"}
        settings |= build_memory_settings(read_memory_mb())
        if not self._is_durable:
            settings |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self._programs / "postgres"), "-D", str(self._data.resolve()), *options]
        return build_confined_command(command, death_signal=self.stop_signal, user=self._user)

    def is_ready(self) -> bool:
        """Return whether the server accepts a connection."""
        try:
            psycopg.connect(self.build_url("postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    def create_database(self, name: str = "toolbench") -> None:
        """Create a database if it does not exist."""
        with psycopg.connect(self.build_url("postgres"), autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))


class Valkey:
    """Valkey server on a Unix socket, which writes changes to disk every second.

    Attributes:
        stop_signal: signal that stops the server.
        environment: the complete environment of the server.
    """

    stop_signal = signal.SIGTERM
    environment = _BASE_ENVIRONMENT

    def __init__(self, data: Path, sockets: Path) -> None:
        self._data = data
        self._socket = sockets / "valkey.sock"
        self._program = find_valkey_server()

    def build_url(self, database: int = 0) -> str:
        """Return the URL of a database by its number, in the form of redis-py."""
        return f"unix://{quote(str(self._socket))}?db={database}"

    @property
    def working_folder(self) -> Path:
        """Folder in which the server must start. The command names it "./", so its path may contain any characters."""
        return self._data

    def prepare(self) -> None:
        """Create the data folder."""
        self._data.mkdir(mode=0o700, parents=True, exist_ok=True)

    def build_command(self) -> list[str]:
        """Return the command that starts the server; run it in `working_folder`."""
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
