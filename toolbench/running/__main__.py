"""Commands of the Makefile and of `toolbench`: `python -m toolbench.running up|link|worker|reset`."""

import os
import shutil
import sys

from toolbench.installation import IS_WHEEL, ROOT, build_command, get_var_folder
from toolbench.running.errors import RunnerError, print_line
from toolbench.running.local_model import has_llama, install_weights
from toolbench.running.options import StartOptions
from toolbench.running.paths import Lock, Paths, read_state
from toolbench.running.processes import build_environment, build_manage_command, build_worker_command
from toolbench.running.servers import check_database
from toolbench.running.startup import Startup


def up() -> None:
    """Start all processes and supervise them until a stop signal.

    Raises:
        RunnerError: Toolbench runs already, processes of an earlier start still run, an option is invalid, the port or
            the database cannot be used, the data folder cannot be written, the disk is nearly full, a process cannot
            start, or the database cannot be migrated.
    """
    paths = Paths(get_var_folder())
    paths.create()
    lock = Lock(paths.var / "up.lock")
    if not lock.acquire():
        state = read_state(paths.state)
        raise RunnerError(
            f"Toolbench runs already{f' at {state.base}/' if state else ''}: "
            f"`{build_command('link')}` prints a link to it."
        )
    options = StartOptions.from_environment(os.environ)
    if options.local_model and not IS_WHEEL and has_llama():
        _try_install_weights()
    Startup(options, paths).run()


def link() -> None:
    """Print a new sign-in link. This process is replaced by the management command `link`.

    Raises:
        RunnerError: Toolbench does not run, and one of these holds: DATABASE_URL or REDIS_URL is not set, the database
            does not answer, or an option in the environment is invalid.
    """
    _exec_with_servers(build_manage_command("link")[1:])


def worker() -> None:
    """Run a worker in addition to those of `make up`. This process is replaced by the worker.

    Raises:
        RunnerError: Toolbench does not run, and one of these holds: DATABASE_URL or REDIS_URL is not set, the database
            does not answer, or an option in the environment is invalid.
    """
    _exec_with_servers(build_worker_command(f"extra-{os.getpid()}")[1:])


def reset() -> None:
    """Delete the folder of all data after a confirmation. The environment variable YES=1 skips the question.

    The database of DATABASE_URL and the data at REDIS_URL are kept.

    Raises:
        RunnerError: Toolbench or one of its processes still runs, or the user did not confirm.
    """
    paths = Paths(get_var_folder())
    if not paths.var.exists():
        return print_line("There is no data.")
    if not Lock(paths.var / "up.lock").acquire() or not Lock(paths.var / "children.lock").acquire():
        raise RunnerError(f"Toolbench runs: stop it first (Ctrl-C where `{build_command('up')}` runs).")
    if os.environ.get("YES") != "1" and input(f"Delete every run and trial in {paths.var}? [y/N] ").lower() != "y":
        raise RunnerError("Nothing was deleted.")
    postgres = paths.var / "postgres"
    if postgres.is_symlink():
        shutil.rmtree(postgres.resolve())
    shutil.rmtree(paths.var.resolve())
    if paths.var.is_symlink():
        paths.var.unlink()
    return print_line(f"Everything in {paths.var} was deleted. A database of DATABASE_URL is not changed.")


def _try_install_weights() -> None:
    """Install the weights of the local model, or print why that failed; Toolbench then runs without the model."""
    try:
        install_weights()
    except RunnerError as error:
        print_line(str(error))


def _exec_with_servers(arguments: list[str]) -> None:
    """Replace this process by a Python program that uses the servers of `make up` or of the environment.

    Args:
        arguments: arguments of the Python interpreter.

    Raises:
        RunnerError: Toolbench does not run, and one of these holds: DATABASE_URL or REDIS_URL is not set, the database
            does not answer, or an option in the environment is invalid.
    """
    paths = Paths(get_var_folder())
    state = read_state(paths.state)
    if state and not Lock(paths.var / "up.lock").acquire():
        environment = state.environment
    elif (database_url := os.environ.get("DATABASE_URL")) and os.environ.get("REDIS_URL"):
        check_database(database_url)
        environment = {"TOOLBENCH_BASE": StartOptions.from_environment(os.environ).base}
    else:
        raise RunnerError(
            f"Toolbench does not run here: start it with `{build_command('up')}`, or set DATABASE_URL and REDIS_URL."
        )
    os.chdir(ROOT)
    os.execve(sys.executable, [sys.executable, *arguments], build_environment(environment))


VERBS = {command.__name__: command for command in (up, link, worker, reset)}


def run_verb(name: str) -> int:
    """Run a verb and return the exit code: 0, 1 after a RunnerError, 130 after Ctrl-C or the end of input."""
    try:
        VERBS[name]()
    except RunnerError as error:
        print(error, file=sys.stderr)
        return 1
    except (KeyboardInterrupt, EOFError):
        return 130
    return 0


def main() -> int:
    """Run the verb given on the command line and return the exit code."""
    if len(sys.argv) != 2 or sys.argv[1] not in VERBS:
        raise SystemExit(f"usage: python -m toolbench.running {'|'.join(VERBS)}")
    return run_verb(sys.argv[1])


if __name__ == "__main__":
    sys.exit(main())
