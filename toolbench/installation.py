"""Folders of an installation: a checkout of the project, or a wheel in a Python environment.

The build of the wheel puts `templates/` and `static/` into the package. In a checkout they are beside it.
"""

import os
from collections.abc import Mapping
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IS_WHEEL = (PACKAGE / "templates").is_dir()
ASSETS = PACKAGE if IS_WHEEL else PACKAGE.parent
ROOT = Path("/") if IS_WHEEL else PACKAGE.parent  # working folder of the processes
COMMAND = "toolbench" if IS_WHEEL else "make"  # what users type before a verb such as `up`


def get_var_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of all data.

    Args:
        environment: environment variables, of which TOOLBENCH_VAR names the folder.

    Returns:
        Without the variable, `var` in a checkout. For a wheel, `toolbench` in the user's data folder: XDG_DATA_HOME,
        by default `~/.local/share`.
    """
    if named := environment.get("TOOLBENCH_VAR"):
        return Path(named).absolute()
    if not IS_WHEEL:
        return PACKAGE.parent / "var"
    return Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolbench"


def build_python_path() -> dict[str, str]:
    """Return the environment variable with which another program finds the package; {} for a wheel."""
    return {} if IS_WHEEL else {"PYTHONPATH": str(PACKAGE.parent)}
