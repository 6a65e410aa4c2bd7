"""Adapters with the real frameworks: runs the test modules of `inside/` in the frameworks' environments."""

import asyncio
from pathlib import Path

import pytest

from tests.frameworks.running import ROOT, run_program

pytestmark = pytest.mark.frameworks
FILES = {"langchain": "langchain_tools.py", "llama-index": "llama_index_tools.py", "crewai": "crewai_tools.py"}


@pytest.mark.parametrize("framework", FILES)
def test_framework_adapter_passes_its_tests_in_the_environment(framework: str, tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    file = ROOT / "tests/frameworks/inside" / FILES[framework]
    options = ("-q", "-p", "no:cacheprovider", "-c", str(tmp_path / "pytest.ini"), "--noconftest")
    exit_code, output, errors = asyncio.run(run_program(framework, tmp_path, "-m", "pytest", *options, str(file)))
    assert exit_code == 0, output + errors
