"""`python -m toolbench.running VERB`, what the verbs of the Makefile stand for."""

import os
import shutil
import sys

from toolbench.running.errors import Problem, say
from toolbench.running.options import Choices
from toolbench.running.paths import ROOT, Lock, Places, read_state, var_folder
from toolbench.running.processes import environment, worker_command
from toolbench.running.servers import check_database
from toolbench.running.startup import Start


def up() -> None:
    """Starts everything and stays until it is stopped."""
    places = Places(var_folder())
    places.make()
    lock = Lock(places.var / "up.lock")
    if not lock.take():
        state = read_state(places.state)
        raise Problem(
            f"Toolbench runs already{f' at {state.base}/' if state else ''}: `make link` prints a link to it."
        )
    Start(Choices.read(os.environ), places).run()


def link() -> None:
    """Prints another link that signs in."""
    _join(["manage.py", "link"])


def worker() -> None:
    """Runs one more worker here, beside those of `make up`, until it is stopped."""
    _join(worker_command(f"extra-{os.getpid()}")[1:])


def reset() -> None:
    """Deletes all data."""
    places = Places(var_folder())
    if not places.var.exists():
        return say("There is no data.")
    if not Lock(places.var / "up.lock").take() or not Lock(places.var / "children.lock").take():
        raise Problem("Toolbench runs: stop it first (Ctrl-C where `make up` runs).")
    if os.environ.get("YES") != "1" and input(f"Delete every run and trial in {places.var}? [y/N] ").lower() != "y":
        raise Problem("Nothing was deleted.")
    postgres = places.var / "postgres"
    if postgres.is_symlink():
        shutil.rmtree(postgres.resolve())
    shutil.rmtree(places.var)
    return say("All data is deleted; `make up` starts anew.")


def _join(arguments: list[str]) -> None:
    """Becomes a Python program on the servers that run: those of `make up`, or those named in the environment."""
    places = Places(var_folder())
    state = read_state(places.state)
    if state and not Lock(places.var / "up.lock").take():
        shared = state.environment
    elif "DATABASE_URL" in os.environ and "REDIS_URL" in os.environ:
        check_database(os.environ["DATABASE_URL"])
        shared = {"TOOLBENCH_BASE": Choices.read(os.environ).base}
    else:
        raise Problem("Toolbench does not run here: start it with `make up`, or set DATABASE_URL and REDIS_URL.")
    os.chdir(ROOT)
    os.execve(sys.executable, [sys.executable, *arguments], environment(shared))


VERBS = {verb.__name__: verb for verb in (up, link, worker, reset)}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1] not in VERBS:
        raise SystemExit(f"usage: python -m toolbench.running {'|'.join(VERBS)}")
    try:
        VERBS[sys.argv[1]]()
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 1
    except (KeyboardInterrupt, EOFError):
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
