"""Script that creates the virtual environment from a list of packages with hashes.

Usage: `python3 bootstrap.py requirements/run.txt`
The script must be able to report a Python that is too old, so it uses the syntax of Python 3.6 and imports only the
standard library. An environment that was made from the same list by the same Python is not changed.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from typing import NoReturn

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VENV = os.path.join(ROOT, ".venv")
MIN_PYTHON = (3, 11)
MIN_FREE_BYTES = 1_500_000_000


def fail(sentence: str) -> NoReturn:
    """End the program with a sentence for the user."""
    sys.exit(f"Toolbench: {sentence}")


def compute_fingerprint(path: str) -> str:
    """Return the SHA-256 of the list at `path` and of the Python version, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read() + sys.version.encode()).hexdigest()


def build_stamp_path(path: str) -> str:
    """Return the path of the file that keeps the fingerprint of a list after its installation."""
    return os.path.join(VENV, "." + os.path.basename(path) + ".sha256")


def is_current(path: str) -> bool:
    """Return whether the environment was made from the list at `path` by this Python."""
    try:
        with open(build_stamp_path(path)) as file:
            return file.read() == compute_fingerprint(path)
    except OSError:
        return False


def check_machine() -> None:
    """End the program if Python is too old or has no venv module, or if the disk has less than 1.5 GB left."""
    if sys.version_info < MIN_PYTHON:
        version = ".".join(str(part) for part in sys.version_info[:2])
        fail(f"needs Python 3.11 or newer, and python3 is {version}: name a newer one with `make up PYTHON=…`.")
    ensurepip = importlib.util.find_spec("ensurepip")
    if ensurepip is None or ensurepip.origin is None:
        fail("needs Python's venv module: install it (Debian: apt install python3-venv) and run make again.")
    if shutil.disk_usage(ROOT).free < MIN_FREE_BYTES:
        fail("needs 1.5 GB of disk for its packages, and there is less: make room and run make again.")


def is_environment_usable() -> bool:
    """Return whether the virtual environment has pip and the Python of this process.

    An upgrade of the system's Python, or the choice of another one, makes it unusable.
    """
    command = [os.path.join(VENV, "bin", "python"), "-c", "import pip, sys; print(sys.version)"]
    try:
        process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return process.returncode == 0 and process.stdout.decode().strip() == sys.version.strip()


def make_environment() -> None:
    """Create the virtual environment in place of an older one, or end the program if that fails."""
    command = [sys.executable, "-m", "venv", "--clear", VENV]
    process = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if process.returncode != 0:
        fail(f"python3 could not make a virtual environment: {process.stdout.decode(errors='replace')}")


def install_packages(path: str) -> None:
    """Install the packages of a list, each checked against its hash, without dependencies that are not in the list.

    End the program if that fails.
    """
    logs = os.path.join(ROOT, "var", "log")
    os.makedirs(logs, exist_ok=True)
    log = os.path.join(logs, "pip.log")
    command = [os.path.join(VENV, "bin", "python"), "-m", "pip", "install", "-q", "--no-deps", "--require-hashes"]
    command += ["--no-input", "--disable-pip-version-check", "--no-compile", "--retries", "2", "-r", path]
    with open(log, "wb") as output:
        exit_code = subprocess.call(command, stdout=output, stderr=output)
    if exit_code != 0:
        fail(f"pip could not install the packages: check the network and the package index, and see {log}.")


def main() -> None:
    """Create or update the environment, unless it was made from the given list by this Python."""
    path = os.path.join(ROOT, sys.argv[1])
    if is_current(path):
        return
    check_machine()
    print(f"Installing packages from {sys.argv[1]} (once; a minute or two).", flush=True)
    if not is_environment_usable():
        make_environment()
    install_packages(path)
    with open(build_stamp_path(path), "w") as file:
        file.write(compute_fingerprint(path))


if __name__ == "__main__":
    main()
