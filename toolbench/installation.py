"""Folders of an installation: a checkout of the project, or a wheel in a Python environment.

The build of the wheel puts `templates/`, `static/` and `docs/glossary.md` into the package. In a checkout, these
are beside the package.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

PACKAGE = Path(__file__).resolve().parent
IS_WHEEL = (PACKAGE / "templates").is_dir()
ASSETS = PACKAGE if IS_WHEEL else PACKAGE.parent  # folder that contains templates/, static/ and docs/
ROOT = Path("/") if IS_WHEEL else PACKAGE.parent  # working folder of the processes
_RUNNING_VERBS = ("up", "link", "worker", "reset")  # of the Makefile and of the command `toolbench`
# Verbs of the command `toolbench` by management command; any other one is run as `toolbench manage NAME`.
_WHEEL_VERB_BY_COMMAND = {
    name: name for name in ("backup", "bundle", "compare", "decide", "eval", "probe", "report", "restore")
} | {
    "export_inspect": "export inspect",
    "export_otlp": "export otlp",
    "import_bundle": "import run",
    "import_cases": "import cases",
    "import_history": "import history",
}


def get_var_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of all data.

    Args:
        environment: environment variables; TOOLBENCH_VAR is the path of the folder.

    Returns:
        TOOLBENCH_VAR as an absolute path. If it is not set: `var` in the checkout; for a wheel, `toolbench` in
        XDG_DATA_HOME or, without this variable, in `~/.local/share`.
    """
    if configured_path := environment.get("TOOLBENCH_VAR"):
        return Path(configured_path).absolute()
    if not IS_WHEEL:
        return PACKAGE.parent / "var"
    return Path(environment.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "toolbench"


def build_log_path(name: str = "", environment: Mapping[str, str] = os.environ) -> str:
    """Return the path of a log file as pages show it: relative to a checkout that contains it, otherwise absolute.

    Args:
        name: name of the file; "" for the folder of all logs.
        environment: environment variables, see `get_var_folder`.
    """
    path = get_var_folder(environment) / f"log/{name}"
    return str(path.relative_to(PACKAGE.parent) if not IS_WHEEL and path.is_relative_to(PACKAGE.parent) else path)


def build_command(verb: str, arguments: str = "", *, is_wheel: bool = IS_WHEEL) -> str:
    """Return the shell command that a user enters for a verb, which depends on the kind of installation.

    Args:
        verb: `up`, `link`, `worker` or `reset`, or the name of a management command.
        arguments: text that follows the verb.
        is_wheel: whether Toolbench is installed from a wheel.
    """
    if verb in _RUNNING_VERBS:
        command = f"toolbench {verb}" if is_wheel else f"make {verb}"
    elif is_wheel:
        command = f"toolbench {_WHEEL_VERB_BY_COMMAND.get(verb, f'manage {verb}')}"
    else:
        command = f"manage.py {verb}"
    return f"{command} {arguments}".rstrip()


def build_weights_command() -> str:
    """Return the shell command that installs the weights of the local model."""
    return "toolbench local-model install" if IS_WHEEL else build_command("up")


def build_python_path() -> dict[str, str]:
    """Return PYTHONPATH with its value, so that another Python process finds the package; {} for a wheel."""
    return {} if IS_WHEEL else {"PYTHONPATH": str(PACKAGE.parent)}


def replace_wildcard_host(url: str, base_url: str) -> str:
    """Return a URL with the host of `base_url` in place of the wildcard host 0.0.0.0 or ::.

    Args:
        url: URL of a server on this machine; returned unchanged if it has another host.
        base_url: address of the site; if it has no host, `url` is returned unchanged.
    """
    host = urlsplit(url).hostname
    base_host = urlsplit(base_url).hostname
    if host not in ("0.0.0.0", "::") or not base_host:
        return url
    return url.replace(f"[{host}]" if ":" in host else host, f"[{base_host}]" if ":" in base_host else base_host, 1)
