"""Shape of the code: lengths of files and functions, parameters, names and packages."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = sorted(
    path
    for folder in ("toolbench", "tests", "benchmarks")
    for path in (ROOT / folder).rglob("*.py")
    if "migrations" not in path.parts
)
PRODUCT = [path for path in SOURCES if path.is_relative_to(ROOT / "toolbench")]
UNSPECIFIC_FILE_NAMES = {"utils", "util", "helpers", "helper", "common", "base", "misc", "views", "managers"}
VAGUE_NAMES = {
    *("one", "asked", "wanted", "told", "said", "own", "some", "every", "to", "heard", "says", "door", "spoken", "way"),
    "world",
}
IGNORE = re.compile(r"#\s*type:\s*ignore(?P<rest>.*)$", re.MULTILINE)
REASONED = re.compile(r"^\[[\w-]+\]\s+#\s+\S+")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class FoundFunction:
    """Function and its file."""

    path: Path
    node: Function

    @property
    def lines(self) -> int:
        assert self.node.end_lineno is not None
        return self.node.end_lineno - self.node.lineno + 1

    @property
    def decorators(self) -> set[str]:
        return {ast.unparse(decorator).partition("(")[0] for decorator in self.node.decorator_list}

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.node.lineno} {self.node.name} ({self.lines} lines)"


@cache
def _functions() -> tuple[FoundFunction, ...]:
    """Return every function of the sources. The first call reads them, so that collecting the tests stays fast."""
    nodes = ((path, node) for path in SOURCES for node in ast.walk(_tree(path)))
    return tuple(FoundFunction(path, node) for path, node in nodes if isinstance(node, Function))


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def _views() -> list[FoundFunction]:
    """Return the functions of views that take a request."""
    views = [found for found in _functions() if "views" in found.path.parts and found.node.args.args]
    return [found for found in views if found.node.args.args[0].arg == "request"]


def _length(path: Path) -> int:
    return len(path.read_text().splitlines())


def _p95(values: list[int]) -> int:
    ordered = sorted(values)
    return ordered[len(ordered) * 95 // 100]


def test_files_have_400_lines_at_most() -> None:
    assert [f"{path}: {_length(path)}" for path in SOURCES if _length(path) > 400] == []


def test_files_have_300_lines_at_most_in_95_percent() -> None:
    assert _p95([_length(path) for path in SOURCES]) <= 300


def test_functions_have_50_lines_at_most() -> None:
    assert [str(found) for found in _functions() if found.lines > 50] == []


def test_functions_have_30_lines_at_most_in_95_percent() -> None:
    assert _p95([found.lines for found in _functions()]) <= 30


def test_views_have_15_lines_at_most() -> None:
    assert [str(found) for found in _views() if found.lines > 15] == []


def test_views_declare_their_http_methods() -> None:
    """Error pages are exempt, since they answer every method."""
    pages = [found for found in _views() if not found.node.name.startswith("_") and found.path.stem != "errors"]
    required = {"require_safe", "require_GET", "require_POST", "require_http_methods"}

    assert [str(found) for found in pages if not found.decorators & required] == []


def test_tasks_have_6_lines_at_most() -> None:
    tasks = [found for found in _functions() if found.decorators & {"shared_task", "app.task"}]

    assert [str(found) for found in tasks if len(found.node.body) > 6 or found.lines > 8] == []


def test_functions_have_6_parameters_at_most() -> None:
    """`self` and `cls` are not counted."""

    def count(node: Function) -> int:
        named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        return len([argument for argument in named if argument.arg not in ("self", "cls")])

    source = [found for found in _functions() if "tests" not in found.path.relative_to(ROOT).parts]
    assert [str(found) for found in source if count(found.node) > 6] == []


def test_file_names_are_not_unspecific() -> None:
    assert [str(path) for path in SOURCES if path.stem in UNSPECIFIC_FILE_NAMES] == []


def test_functions_contain_no_imports() -> None:
    """LabConfig.ready is exempt: without it the web process would publish to Celery's default broker."""
    functions_with_imports = [
        str(found)
        for found in _functions()
        if any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(found.node))
    ]
    assert [line for line in functions_with_imports if not line.startswith("toolbench/lab/apps.py")] == []


def test_init_files_of_package_and_engine_are_empty() -> None:
    assert (ROOT / "toolbench/__init__.py").read_text() == ""
    assert (ROOT / "toolbench/engine/__init__.py").read_text() == ""


def test_type_ignores_are_few_and_have_reasons() -> None:
    ignores = [
        (path, match["rest"])
        for path in SOURCES
        if path != Path(__file__)
        for match in IGNORE.finditer(path.read_text())
    ]
    assert [f"{path}{rest}" for path, rest in ignores if not REASONED.match(rest)] == []
    assert len(ignores) <= 5


def test_web_api_and_lab_have_no_html_in_python() -> None:
    markup = re.compile(r"""["'].*<(div|span|table|td|tr|p|a|li|ul|h[1-6])[ >]""")
    sources = [path for path in SOURCES if path.parts[len(ROOT.parts) :][1] in ("web", "api", "lab")]

    assert [str(path) for path in sources if markup.search(path.read_text())] == []


def test_class_names_are_unique() -> None:
    """Classes that Django names and choices inside a model may share a name."""
    names = Counter(node.name for path in PRODUCT for node in ast.walk(_tree(path)) if isinstance(node, ast.ClassDef))
    allowed = {"Command", "Migration", "Meta", "State", "Kind", "Outcome"}
    assert {name for name, count in names.items() if count > 1} <= allowed


def test_parameter_and_variable_names_are_not_vague() -> None:
    """`for trial in trials`, not `for one in trials`."""
    names = {node.arg for path in PRODUCT for node in ast.walk(_tree(path)) if isinstance(node, ast.arg)}
    names |= {node.id for path in PRODUCT for node in ast.walk(_tree(path)) if isinstance(node, ast.Name)}
    assert names & VAGUE_NAMES == set()


def test_names_of_tests_have_70_characters_at_most() -> None:
    names = [found.node.name for found in _functions() if found.node.name.startswith("test_")]
    assert [name for name in names if len(name) > 70] == []


def test_file_names_do_not_repeat_package_name() -> None:
    """A file does not repeat a word of its package's name: `compare/query.py`, not `compare_query.py`."""
    repeated = [path.name for path in PRODUCT if path.parent.name.rstrip("s") in path.stem.split("_")]
    assert repeated == []


def test_packages_have_3_to_20_files() -> None:
    """Two files may stand beside packages of the same kind; the text formats have one file for each family, and
    Django looks for commands in one folder."""
    counts = Counter(path.parent.relative_to(ROOT) for path in PRODUCT if path.name != "__init__.py")
    whole = {folder: count for folder, count in counts.items() if not any(one.parent == folder for one in counts)}
    pairs = {"toolbench/lab/interchange/history"}
    large = {"toolbench/engine/formats/families", "toolbench/lab/management/commands"}
    assert {str(folder) for folder, count in counts.items() if count > 20} == large
    assert {str(folder) for folder, count in whole.items() if count < 3} == pairs


def test_files_have_15_lines_at_least() -> None:
    """Exempt are entry points that a framework names, errors, and the only transform of results."""
    named = {"__init__.py", "__main__.py", "apps.py", "celery.py", "errors.py", "urls.py", "wsgi.py"}
    files = [path for path in PRODUCT if path.name not in named and "commands" not in path.parts]
    short = {str(path.relative_to(ROOT)) for path in files if len(path.read_text().splitlines()) < 15}
    assert short == {"toolbench/engine/transforms/results.py"}


def test_makefile_lists_every_file_with_long_tests() -> None:
    listed = re.findall(r"^LONG_TESTS = (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[0].split()
    marked = {path for path in SOURCES if "pytest.mark.long" in path.read_text() and path != Path(__file__)}
    assert {path for path in marked if not any(path.is_relative_to(ROOT / name) for name in listed)} == set()
