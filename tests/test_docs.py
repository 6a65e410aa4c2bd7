"""The documentation says nothing that the code does not hold, and no file speaks of the machine it was made on."""

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
LARGEST_IMAGE = 300_000
LONGEST_DECISION = 60
PIP_SETTINGS = ("/etc/pip.conf", "~/.pip/pip.conf", "~/.config/pip/pip.conf", "~/.config/uv/uv.toml")
INDEX_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX")
MACHINE = re.compile(r"/(?:home|Users)/[a-z]\w*/|/roo[t]/\w|/wor[k]/|/bash_job[s]|--(?:extra-)?index-ur[l]")


@cache
def _symbols(path: Path) -> frozenset[str]:
    """Every name that a module defines at its top."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _defined(room: str, name: str, colon: str) -> bool:
    file, _, symbol = name.partition(colon)
    path = ROOT / room / file
    return path.is_file() and symbol in _symbols(path)


def _kept(text: str, pattern: str) -> list[str]:
    """What the pattern's only group found, each once."""
    return sorted(set(re.findall(pattern, text)))


def _rows() -> Iterator[tuple[str, ...]]:
    """The rows of four cells that say what covers a statement."""
    inside = False
    for line in COVERAGE.splitlines():
        if not line.startswith("|"):
            inside = False
        elif re.match(r"\| it \w+ \|", line):
            inside = True
        elif inside and not line.startswith("|---"):
            yield tuple(cell.strip() for cell in line.strip("|").split(" | "))


def _code_of(text: str) -> str:
    """Only what stands in code: fenced blocks and spans."""
    return "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text, re.DOTALL))


def _ours() -> Iterator[Path]:
    """Every file of the project: all that .gitignore does not leave out."""
    ignored = [".git", *(line.strip().strip("/") for line in (ROOT / ".gitignore").read_text("utf-8").splitlines())]

    def kept(names: list[str]) -> list[str]:
        return [name for name in names if not any(fnmatch(name, one) for one in ignored)]

    for folder, folders, files in os.walk(ROOT):
        folders[:] = kept(folders)
        yield from (Path(folder) / name for name in kept(files))


def _index_hosts() -> set[str]:
    """Hosts of the package indexes that this machine uses."""
    settings = [Path(name).expanduser() for name in PIP_SETTINGS]
    said = [path.read_text("utf-8") for path in settings if path.is_file()]
    said += [os.environ.get(name, "") for name in INDEX_VARIABLES]
    hosts = re.findall(r"https?://(?:[^/@\s]+@)?([^/:\s\"']+)", "\n".join(said))
    return {host for host in hosts if "." in host and host != "pypi.org"}


def test_every_symbol_and_test_named_by_the_coverage_page_exists() -> None:
    code = _kept(COVERAGE, r"`([\w/]+\.py:\w+)`")
    tests = _kept(COVERAGE, r"`([\w/]+\.py::\w+)`")
    assert len(code) > 100
    assert len(tests) > 100
    assert [name for name in code if not _defined("toolbench", name, ":")] == []
    assert [name for name in tests if "::test_" not in name or not _defined("tests", name, "::")] == []


def test_every_data_file_named_by_the_coverage_page_exists() -> None:
    names = _kept(COVERAGE, r"`((?:engine|evals|providers)/[\w/]+\.(?:json|jinja))`")
    assert names
    assert [name for name in names if not (ROOT / "toolbench" / name).is_file()] == []


def test_every_statement_is_covered_or_said_to_be_not_ours() -> None:
    rows = list(_rows())
    assert len(rows) > 150
    assert [row for row in rows if len(row) != 4 or not all(row)] == []
    bare = [row for row in rows if row[1] == "–" or row[2] == "–"]
    assert [row for row in bare if not re.match(r"not ours: |said in |\[|`", row[3])] == []
    assert [row for row in rows if "later: " in row[3]] == []


def test_the_published_rows_on_the_coverage_page_are_the_published_ones() -> None:
    listed = re.findall(r"^\| `(\S+)` `(\S+)` \| (\d+)/(\d+) \| (\d+)/(\d+) \| (\d+) \|$", COVERAGE, re.MULTILINE)
    shot = published.load_snapshots()[0]
    assert [(one[0], one[1], *map(int, one[2:])) for one in listed] == [
        (cell.model, cell.profile, *cell.tool, *cell.control, cell.p95_ms) for cell in shot.cells
    ]
    assert all(f"| `{one.model}` | `{one.profile}` |" in COVERAGE for one in shot.recommendations)


def test_every_persona_named_by_the_coverage_page_exists() -> None:
    known = {
        row["slug"] for row in json.loads((ROOT / "toolbench/providers/data/personas.json").read_text())["personas"]
    }
    named = {
        slug
        for part in re.findall(r"personas? ((?:`[\w-]+`(?:, )?)+)", COVERAGE)
        for slug in _kept(part, r"`([\w-]+)`")
    }
    assert named
    assert named - known == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_address_of_a_page_leads_somewhere(page: Path) -> None:
    slugs = {scenario.slug for scenario in scenarios.list_scenarios()}
    for address in _kept(page.read_text("utf-8"), r"`(/[a-z][\w/-]*/)(?:\?\S*)?`"):
        if not address.startswith(("/var/", "/tmp/")):
            slug = resolve(address).kwargs.get("slug")
            assert slug is None or slug in slugs


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in _kept(page.read_text("utf-8"), r"\]\(([^)\s]+)\)"):
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
def test_every_verb_is_one_of_the_makefile(page: Path) -> None:
    verbs = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(_kept(_code_of(page.read_text("utf-8")), r"\bmake ([a-z][a-z-]*)")) - verbs == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_and_option_of_manage_py_exists(page: Path) -> None:
    code = _code_of(page.read_text("utf-8"))
    known = {path.stem for path in (ROOT / "toolbench/lab/management/commands").glob("*.py")}
    assert set(_kept(code, r"manage\.py ([a-z_]+)")) - known == set()
    flags = {row.flag for row in OPTIONS.values()} | {"--yes", "--dry-run", "--resume", "--help"}
    said = [flag for line in _kept(code, r"(manage\.py eval[^`\n]*)") for flag in re.findall(r"--[a-z-]+", line)]
    assert set(said) - flags == set()


def test_every_variable_of_openrouter_that_is_documented_is_read() -> None:
    documented = {name for page in PAGES for name in re.findall(r"OPENROUTER_([A-Z_]*[A-Z])", page.read_text("utf-8"))}
    readers = [*(ROOT / "toolbench/lab/management/eval").glob("*.py"), ROOT / "toolbench/providers/data/templates.json"]
    code = "\n".join(path.read_text("utf-8") for path in readers)
    assert documented
    unread = {name for name in documented if not re.search(rf'(?:"|OPENROUTER_|{{VARIABLE_PREFIX}}){name}"', code)}
    assert unread == set()


def test_every_metric_is_explained_with_its_name() -> None:
    page = (DOCS / "metrics.md").read_text("utf-8")
    said = [(one.label, f"### {one.label}\n\n`{one.name}`: {one.denominator}. ") for one in METRICS.values()]
    assert [label for label, words in said if words not in page] == []


def test_a_decision_is_a_numbered_page() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    numbers = [page.name[:3] for page in pages]
    assert [page.name for page in pages if not re.fullmatch(r"\d{3}-[a-z0-9-]+\.md", page.name)] == []
    assert len(numbers) == len(set(numbers))
    for page in pages:
        lines = page.read_text("utf-8").splitlines()
        assert lines[0].startswith(f"# {page.name[:3]} ")
        assert len(lines) <= LONGEST_DECISION


def test_every_image_is_small_and_shown() -> None:
    text = "\n".join(page.read_text("utf-8") for page in PAGES)
    images = sorted((DOCS / "images").iterdir())
    assert images
    assert [image.name for image in images if image.stat().st_size > LARGEST_IMAGE or image.name not in text] == []


def test_no_file_names_a_machine_or_a_package_index() -> None:
    here = [str(ROOT), *_index_hosts()] if len(ROOT.parts) > 2 else [*_index_hosts()]
    found = []
    for path in _ours():
        text = path.read_bytes().decode("utf-8", "replace")
        said = [*MACHINE.findall(text), *(word for word in here if word in text)]
        found += [f"{path.relative_to(ROOT)}: {said[0]}"] if said else []
    assert found == []
    assert "http" not in re.sub(
        r"^[ #].*$|^[\w-]*http\w*", "", (ROOT / "requirements/run.txt").read_text(), flags=re.MULTILINE
    )


def test_the_table_of_quirks_says_what_the_personas_publish() -> None:
    page = (DOCS / "dialects.md").read_text("utf-8")
    healed = re.findall(r"^\| `([\w-]+)` \| [^|]+ \| ([^|]+) \| (\d+)% \| (\d+)% \| (\d+)% \|$", page, re.MULTILINE)
    published_rates = {
        slug: tuple(round(100 * persona.true_rates["tools"][name]) for name in ("raw", "baseline", "production"))
        for slug, persona in load_personas().items()
    }
    assert {row[0]: tuple(map(int, row[2:])) for row in healed} == {
        slug: rates for slug, rates in published_rates.items() if rates[0] != rates[2]
    }
    for slug, how, *_ in healed:
        assert [name for name in load_personas()[slug].workarounds if f"`{name}`" not in how] == []
