"""Documentation compared with the code, and files that must not name the machine on which they were written."""

import ast
import json
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest
from django.urls import resolve

from toolbench.evals import published, scenarios
from toolbench.lab.management.eval.options import OPTIONS
from toolbench.lab.metrics.definitions import METRICS
from toolbench.providers.simulated.personas import load_personas

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = (*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(DOCS.rglob("*.md")))
COVERAGE = (DOCS / "coverage.md").read_text("utf-8")
MAX_IMAGE_BYTES = 300_000
MAX_DECISION_LINES = 60
PIP_SETTINGS = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf", "~/.config/uv/uv.toml")
INDEX_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
MACHINE = re.compile(r"/(?:home|Users)/[a-z]\w*/|/roo[t]/\w|/wor[k]/|/bash_job[s]|--(?:extra-)?index-ur[l]")


@cache
def _list_symbols(path: Path) -> frozenset[str]:
    """Return every name that a module defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _is_defined(top_folder: str, name: str, colon: str) -> bool:
    file, _, symbol = name.partition(colon)
    path = ROOT / top_folder / file
    return path.is_file() and symbol in _list_symbols(path)


def _find_all(text: str, pattern: str) -> list[str]:
    """Return the distinct texts of the pattern's only group, sorted."""
    return sorted(set(re.findall(pattern, text)))


def _iter_coverage_rows() -> Iterator[tuple[str, ...]]:
    """Yield the rows of four cells that state what covers a statement."""
    inside = False
    for line in COVERAGE.splitlines():
        if not line.startswith("|"):
            inside = False
        elif re.match(r"\| it \w+ \|", line):
            inside = True
        elif inside and not line.startswith("|---"):
            yield tuple(cell.strip() for cell in line.strip("|").split(" | "))


def _extract_code(text: str) -> str:
    """Return the code in a Markdown text: fenced blocks and spans."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


def _iter_project_files() -> Iterator[Path]:
    """Yield every file of the project that .gitignore does not exclude."""
    ignored = [".git", *(line.strip().strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines())]

    def exclude_ignored(names: list[str]) -> list[str]:
        return [name for name in names if not any(fnmatch(name, one) for one in ignored)]

    for folder, folders, files in os.walk(ROOT):
        folders[:] = exclude_ignored(folders)
        yield from (Path(folder) / name for name in exclude_ignored(files))


def _find_index_hosts() -> set[str]:
    """Return the hosts of the package indexes that this machine uses."""
    settings = [Path(name).expanduser() for name in PIP_SETTINGS]
    said = [path.read_text("utf-8") for path in settings if path.is_file()]
    said += [os.environ.get(name, "") for name in INDEX_VARIABLES]
    hosts = re.findall(r"https?://(?:[^/@\s]+@)?([^/:\s\"']+)", "\n".join(said))
    return {host for host in hosts if "." in host and host != "pypi.org"}


def test_coverage_page_names_only_existing_symbols_and_tests() -> None:
    code = _find_all(COVERAGE, r"`([\w/]+\.py:\w+)`")
    tests = _find_all(COVERAGE, r"`([\w/]+\.py::\w+)`")
    assert len(code) > 100
    assert len(tests) > 100
    assert [name for name in code if not _is_defined("toolbench", name, ":")] == []
    assert [name for name in tests if "::test_" not in name or not _is_defined("tests", name, "::")] == []


def test_coverage_page_names_only_existing_data_files() -> None:
    names = _find_all(COVERAGE, r"`((?:engine|evals|providers)/[\w/]+\.(?:json|jinja))`")
    assert names
    assert [name for name in names if not (ROOT / "toolbench" / name).is_file()] == []


def test_coverage_page_covers_or_excludes_every_statement() -> None:
    rows = list(_iter_coverage_rows())
    assert len(rows) > 150
    assert [row for row in rows if len(row) != 4 or not all(row)] == []
    uncovered = [row for row in rows if row[1] == "–" or row[2] == "–"]
    assert [row for row in uncovered if not re.match(r"not ours: |said in |\[|`", row[3])] == []
    assert [row for row in rows if "later: " in row[3]] == []


def test_coverage_page_has_rows_of_published_snapshot() -> None:
    listed = re.findall(r"^\| `(\S+)` `(\S+)` \| (\d+)/(\d+) \| (\d+)/(\d+) \| (\d+) \|$", COVERAGE, re.MULTILINE)
    snapshot = published.load_snapshots()[0]
    assert [(one[0], one[1], *map(int, one[2:])) for one in listed] == [
        (cell.model, cell.profile, *cell.tool, *cell.control, cell.p95_ms) for cell in snapshot.cells
    ]
    assert all(f"| `{one.model}` | `{one.profile}` |" in COVERAGE for one in snapshot.recommendations)


def test_coverage_page_names_only_existing_simulated_models() -> None:
    known = {
        row["slug"] for row in json.loads((ROOT / "toolbench/providers/data/personas.json").read_text())["personas"]
    }
    named = {
        slug
        for part in re.findall(r"simulated models? ((?:`[\w-]+`(?:, )?)+)", COVERAGE)
        for slug in _find_all(part, r"`([\w-]+)`")
    }
    assert named
    assert named - known == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_names_only_addresses_that_resolve(page: Path) -> None:
    slugs = {scenario.slug for scenario in scenarios.list_scenarios()}
    for address in _find_all(page.read_text("utf-8"), r"`(/[a-z][\w/-]*/)(?:\?\S*)?`"):
        if not address.startswith(("/var/", "/tmp/")):
            slug = resolve(address).kwargs.get("slug")
            assert slug is None or slug in slugs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_links_lead_to_existing_files_and_headings(page: Path) -> None:
    for target in _find_all(page.read_text("utf-8"), r"\]\(([^)\s]+)\)"):
        if target.startswith(("http://", "https://")):
            continue
        file, _, heading = target.partition("#")
        found = (page.parent / file) if file else page
        assert found.exists(), target
        headings = re.findall(r"^#+ (.+)$", found.read_text("utf-8"), re.MULTILINE) if heading else []
        assert not heading or heading in {
            re.sub(r"[^\w -]", "", one).strip().lower().replace(" ", "-") for one in headings
        }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_names_only_existing_make_targets(page: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(_find_all(_extract_code(page.read_text("utf-8")), r"\bmake ([a-z][a-z-]*)")) - verbs == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_docs_page_names_only_existing_commands_and_options(page: Path) -> None:
    code = _extract_code(page.read_text("utf-8"))
    known = {path.stem for path in (ROOT / "toolbench/lab/management/commands").glob("*.py")}
    assert set(_find_all(code, r"manage\.py ([a-z_]+)")) - known == set()
    flags = {row.flag for row in OPTIONS.values()} | {"--yes", "--dry-run", "--resume", "--help"}
    said = [flag for line in _find_all(code, r"(manage\.py eval[^`\n]*)") for flag in re.findall(r"--[a-z-]+", line)]
    assert set(said) - flags == set()


def test_docs_name_only_openrouter_variables_that_are_read() -> None:
    documented = {name for page in PAGES for name in re.findall(r"OPENROUTER_([A-Z_]*[A-Z])", page.read_text("utf-8"))}
    readers = [*(ROOT / "toolbench/lab/management/eval").glob("*.py"), ROOT / "toolbench/providers/data/templates.json"]
    code = "\n".join(path.read_text("utf-8") for path in readers)
    assert documented
    unread = {name for name in documented if not re.search(rf'(?:"|OPENROUTER_|{{VARIABLE_PREFIX}}){name}"', code)}
    assert unread == set()


def test_metrics_page_explains_every_metric() -> None:
    page = (DOCS / "metrics.md").read_text("utf-8")
    said = [(one.label, f"### {one.label}\n\n`{one.name}`: {one.denominator}. ") for one in METRICS.values()]
    assert [label for label, words in said if words not in page] == []


def test_decision_records_are_numbered_and_short() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [page.name[:3] for page in pages]
    assert [page.name for page in pages if not re.fullmatch(r"\d{3}-[a-z0-9-]+\.md", page.name)] == []
    assert len(numbers) == len(set(numbers))
    for page in pages:
        lines = page.read_text("utf-8").splitlines()
        assert lines[0].startswith(f"# {page.name[:3]} ")
        assert len(lines) <= MAX_DECISION_LINES


def test_docs_images_are_small_and_used() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    images = sorted((DOCS / "images").iterdir())
    assert images
    assert [image.name for image in images if image.stat().st_size > MAX_IMAGE_BYTES or image.name not in text] == []


def test_project_files_name_no_machine_and_no_package_index() -> None:
    machine_words = [str(ROOT), *_find_index_hosts()] if len(ROOT.parts) > 2 else [*_find_index_hosts()]
    found = []
    for path in _iter_project_files():
        text = path.read_bytes().decode("utf-8", "replace")
        said = [*MACHINE.findall(text), *(word for word in machine_words if word in text)]
        found += [f"{path.relative_to(ROOT)}: {said[0]}"] if said else []
    assert found == []
    assert "http" not in re.sub(
        r"^[ #].*$|^[\w-]*http\w*", "", (ROOT / "requirements/run.txt").read_text(), flags=re.MULTILINE
    )


def test_dialects_page_has_published_rates_of_simulated_models() -> None:
    page = (DOCS / "dialects.md").read_text("utf-8")
    table_rows = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+) \| (\d+)% \| (\d+)% \| (\d+)% \|$", page, re.MULTILINE)
    published_rates = {
        slug: tuple(round(100 * persona.true_rates["tools"][name]) for name in ("raw", "baseline", "production"))
        for slug, persona in load_personas().items()
    }
    assert {row[0]: tuple(map(int, row[2:])) for row in table_rows} == {
        slug: rates for slug, rates in published_rates.items() if rates[0] != rates[2]
    }
    for slug, workarounds, *_ in table_rows:
        assert [name for name in load_personas()[slug].workarounds if f"`{name}`" not in workarounds] == []
