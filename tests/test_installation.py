"""Folders and commands of a checkout and of a wheel."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.core.management import get_commands

from toolbench import installation
from toolbench.cli.verbs import EXPORT_COMMANDS, IMPORT_COMMANDS, VERBS
from toolbench.installation import build_command, build_log_path, get_var_folder, replace_wildcard_host


def test_get_var_folder_of_checkout_is_beside_package() -> None:
    assert get_var_folder({"HOME": "/home/me"}) == Path(installation.__file__).resolve().parents[1] / "var"


def test_get_var_folder_makes_toolbench_var_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert get_var_folder({"TOOLBENCH_VAR": "data"}) == tmp_path / "data"


@pytest.mark.parametrize(
    ("environment", "expected"),
    [({"XDG_DATA_HOME": "/data"}, Path("/data/toolbench")), ({}, Path.home() / ".local/share/toolbench")],
)
def test_get_var_folder_of_wheel_is_in_user_folder(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], expected: Path
) -> None:
    monkeypatch.setattr(installation, "IS_WHEEL", True)

    assert get_var_folder(environment) == expected


def test_build_log_path_is_absolute_outside_of_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    assert build_log_path("web.log", {}) == "var/log/web.log"
    assert build_log_path("", {"TOOLBENCH_VAR": "/data"}) == "/data/log"

    monkeypatch.setattr(installation, "IS_WHEEL", True)
    assert build_log_path("web.log", {"XDG_DATA_HOME": "/data"}) == "/data/toolbench/log/web.log"


@pytest.mark.parametrize(
    ("verb", "arguments", "in_checkout", "in_wheel"),
    [
        ("up", "", "make up", "toolbench up"),
        ("eval", "--resume 3", "manage.py eval --resume 3", "toolbench eval --resume 3"),
        ("import_bundle", "FILE", "manage.py import_bundle FILE", "toolbench import run FILE"),
        ("reclassify", "", "manage.py reclassify", "toolbench manage reclassify"),
    ],
)
def test_build_command_follows_kind_of_installation(verb: str, arguments: str, in_checkout: str, in_wheel: str) -> None:
    assert build_command(verb, arguments, is_wheel=False) == in_checkout
    assert build_command(verb, arguments, is_wheel=True) == in_wheel


def test_build_command_of_wheel_begins_with_existing_verb() -> None:
    for name in ("up", "link", *get_commands()):
        words = build_command(name, is_wheel=True).split()
        assert words[1] in VERBS
        assert words[1] != "import" or IMPORT_COMMANDS[words[2]] == name
        assert words[1] != "export" or EXPORT_COMMANDS[words[2]] == name
        assert words[1] != "manage" or name not in {*VERBS, *IMPORT_COMMANDS.values(), *EXPORT_COMMANDS.values()}


def list_texts(path: Path) -> Iterator[str]:
    """Yield the string constants of a module except docstrings."""
    tree = ast.parse(path.read_text())
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in statements:
            yield node.value


def test_texts_name_no_command_of_checkouts_only() -> None:
    command = re.compile(r"manage\.py \w|\bmake (?:up|link|worker|reset)\b")
    package = Path(installation.__file__).parent
    modules = {path: "\n".join(list_texts(path)) for path in package.rglob("*.py")}
    templates = {path: path.read_text() for path in (installation.ASSETS / "templates").rglob("*.html")}
    found = {
        path.relative_to(package.parent).as_posix()
        for path, text in (modules | templates).items()
        if command.search(text)
    }
    # The first file runs in a checkout only; the second one has both commands.
    assert found == {"toolbench/running/bootstrap.py", "toolbench/running/options.py"}


@pytest.mark.parametrize(
    ("url", "base_url", "expected"),
    [
        ("http://0.0.0.0:8001", "http://bench.example.org:8000", "http://bench.example.org:8001"),
        ("http://[::]:8001", "http://[2001:db8::5]:8000", "http://[2001:db8::5]:8001"),
        ("http://192.0.2.7:8001", "http://bench.example.org:8000", "http://192.0.2.7:8001"),
        ("http://0.0.0.0:8001", "", "http://0.0.0.0:8001"),
        ("", "http://bench.example.org:8000", ""),
    ],
)
def test_replace_wildcard_host_names_the_host_of_the_site(url: str, base_url: str, expected: str) -> None:
    assert replace_wildcard_host(url, base_url) == expected
