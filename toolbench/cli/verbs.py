"""Verbs of the command `toolbench`, which start, use and check an installation.

A verb that is also a target of the Makefile or a command of `manage.py` calls the same function as that target or
command.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from toolbench.cli.doctor import check_installation, is_running
from toolbench.installation import get_var_folder
from toolbench.manage import main as run_management_command
from toolbench.running.__main__ import run_verb
from toolbench.running.database_service import serve_database
from toolbench.running.errors import RunnerError, print_line
from toolbench.running.local_model import install_weights
from toolbench.running.paths import Paths

# Management commands by the first argument of the verbs `import` and `export`.
IMPORT_COMMANDS = {"run": "import_bundle", "history": "import_history", "cases": "import_cases"}
EXPORT_COMMANDS = {"inspect": "export_inspect", "otlp": "export_otlp"}


@dataclass(frozen=True, slots=True)
class Verb:
    """Verb of the command.

    Attributes:
        help: description in the list of verbs.
        run: runs the verb with its arguments and returns the exit code.
    """

    help: str
    run: Callable[[Sequence[str]], int]


def _build_parser(verb: str) -> argparse.ArgumentParser:
    return argparse.ArgumentParser(prog=f"toolbench {verb}", description=VERBS[verb].help)


def _run_up(arguments: Sequence[str]) -> int:
    """Start all processes and return the exit code; an option replaces the environment variable that its help names."""
    parser = _build_parser("up")
    parser.add_argument("--host", help="address to listen on (HOST); default: 127.0.0.1")
    parser.add_argument("--port", help="port of the site; the gateway has the next one (PORT); default: 8000")
    parser.add_argument("--workers", help="number of workers (WORKERS); default: 1")
    parser.add_argument("--var", metavar="FOLDER", help="folder of all data (TOOLBENCH_VAR)")
    parser.add_argument("--no-local-model", action="store_true", help="leave the local model out (LOCAL_MODEL=0)")
    options = parser.parse_args(arguments)
    variables = {"HOST": options.host, "PORT": options.port, "WORKERS": options.workers, "TOOLBENCH_VAR": options.var}
    os.environ |= {name: value for name, value in variables.items() if value is not None}
    if options.no_local_model:
        os.environ["LOCAL_MODEL"] = "0"
    return run_verb("up")


def _build_running_verb(name: str, help_text: str) -> Verb:
    """Build a verb without options that `toolbench.running` runs."""

    def run(arguments: Sequence[str]) -> int:
        _build_parser(name).parse_args(arguments)
        return run_verb(name)

    return Verb(help_text, run)


def _build_management_verb(name: str, help_text: str) -> Verb:
    """Build a verb that is the management command of the same name."""
    return Verb(help_text, lambda arguments: _manage([name, *arguments]))


def _build_database_verb(name: str, help_text: str) -> Verb:
    """Build a verb that is the management command of the same name and also works while Toolbench is stopped.

    If DATABASE_URL is not set and Toolbench does not run, the verb serves the database in the data folder during the
    command.
    """

    def run(arguments: Sequence[str]) -> int:
        paths = Paths(get_var_folder())
        if os.environ.get("DATABASE_URL") or is_running(paths) or not {"-h", "--help"}.isdisjoint(arguments):
            return _manage([name, *arguments])
        try:
            with serve_database(paths) as url:
                os.environ["DATABASE_URL"] = url
                return _manage([name, *arguments])
        except RunnerError as error:
            sys.stderr.write(f"{error}\n")
            return 1

    return Verb(help_text, run)


def _manage(arguments: Sequence[str]) -> int:
    """Run a management command and return 0.

    Raises:
        SystemExit: the command failed or the database does not answer.
    """
    run_management_command(("toolbench", *arguments))
    return 0


def _run_import(arguments: Sequence[str]) -> int:
    parser = _build_parser("import")
    parser.add_argument("what", choices=sorted(IMPORT_COMMANDS), help="run: a bundle or a log of Inspect AI")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the file, or the source of the test cases")
    options = parser.parse_args(arguments)
    return _manage([IMPORT_COMMANDS[options.what], *options.arguments])


def _run_export(arguments: Sequence[str]) -> int:
    parser = _build_parser("export")
    parser.add_argument("what", choices=sorted(EXPORT_COMMANDS), help="inspect: logs of Inspect AI; otlp: spans")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="the run and the options")
    options = parser.parse_args(arguments)
    return _manage([EXPORT_COMMANDS[options.what], *options.arguments])


def _run_doctor(arguments: Sequence[str]) -> int:
    _build_parser("doctor").parse_args(arguments)
    findings = check_installation(os.environ)
    for finding in findings:
        print_line(finding.line)
    return int(any(finding.is_error for finding in findings))


def _run_local_model(arguments: Sequence[str]) -> int:
    parser = _build_parser("local-model")
    parser.add_argument("action", choices=["install"])
    parser.parse_args(arguments)
    try:
        install_weights()
    except RunnerError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    print_line("The weights of the local model are installed: the next start serves the model.")
    return 0


VERBS: Mapping[str, Verb] = {
    "up": Verb("start everything and print a link to sign in; Ctrl-C stops it", _run_up),
    "link": _build_running_verb("link", "print another link to sign in"),
    "worker": _build_running_verb("worker", "run one more worker"),
    "reset": _build_running_verb("reset", "delete all data, after a confirmation"),
    "eval": _build_management_verb("eval", "run trials and print their success"),
    "probe": _build_management_verb("probe", "probe endpoints and print what each can do"),
    "report": _build_management_verb("report", "write a run as files"),
    "compare": _build_management_verb("compare", "compare two runs"),
    "decide": _build_management_verb("decide", "apply a decision rule"),
    "bundle": _build_management_verb("bundle", "write a run as one file for another installation"),
    "backup": _build_database_verb("backup", "write the whole database into one file"),
    "restore": _build_database_verb("restore", "replace the database by a backup"),
    "import": Verb("import a run, a history or benchmark cases", _run_import),
    "export": Verb("write a run as logs of Inspect AI or as OTLP spans", _run_export),
    "doctor": Verb("check this installation and say what is missing or wrong", _run_doctor),
    "local-model": Verb("install the weights of the local model", _run_local_model),
    "manage": Verb("run any other management command; `toolbench manage help` lists them", _manage),
}
