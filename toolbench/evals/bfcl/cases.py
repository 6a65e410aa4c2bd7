"""Single-turn Python cases of the Berkeley Function Calling Leaderboard (BFCL), read from its wheel.

The wheel `bfcl_eval` (Apache 2.0, by its authors at UC Berkeley) comes with the extra `bfcl`. This module does not
import it, so its requirements need not be installed.
"""

import importlib.util
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from toolbench.engine.types import JsonObject
from toolbench.evals.bfcl.schemas import build_json_schema
from toolbench.evals.data_files import freeze_row

CATEGORIES = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
_PACKAGE = "bfcl_eval"


class BfclUnavailableError(Exception):
    """BFCL cannot judge or run calls; the message says why."""


class NotInstalledError(BfclUnavailableError):
    """BFCL's wheel is not installed; the message says how to install it."""

    def __init__(self) -> None:
        super().__init__("BFCL's data is not installed: run `pip install --no-deps bfcl-eval mpmath`.")


@dataclass(frozen=True, slots=True)
class BfclCase:
    """One question with its accepted answers.

    Attributes:
        question: The messages of the question.
        functions: The functions as BFCL writes them.
        answers: For each expected call, {function name: {parameter name: accepted values}}.
    """

    id: str
    category: str
    question: tuple[JsonObject, ...]
    functions: tuple[JsonObject, ...]
    answers: tuple[JsonObject, ...]

    @classmethod
    def from_json(cls, document: JsonObject) -> "BfclCase":
        """Return the case from the result of `dataclasses.asdict`, in which tuples may have become lists.

        Raises:
            ValueError: The case has no expected call, or an expected call does not name exactly one function.
        """
        case = cls(**freeze_row(document))
        if not case.answers or not all(isinstance(answer, dict) and len(answer) == 1 for answer in case.answers):
            raise ValueError("answers must have one object per expected call, with the name of its function")
        return case

    @property
    def tools(self) -> tuple[JsonObject, ...]:
        """Return the functions in OpenAI's format, with JSON Schemas."""
        return tuple(build_tool(function) for function in self.functions)


def is_installed() -> bool:
    """Return whether the wheel is installed."""
    return importlib.util.find_spec(_PACKAGE) is not None


def read_version() -> str:
    """Return the version of the wheel.

    Raises:
        NotInstalledError: BFCL is not installed.
    """
    try:
        return metadata.version(_PACKAGE)
    except metadata.PackageNotFoundError:
        raise NotInstalledError from None


def iter_cases(categories: Sequence[str] = CATEGORIES) -> Iterator[BfclCase]:
    """Yield all cases of the categories, each with its accepted answers, category by category, in BFCL's order.

    Raises:
        NotInstalledError: BFCL is not installed.
    """
    for category, row, answers in iter_rows(categories):
        yield BfclCase(
            id=row["id"],
            category=category,
            question=tuple(row["question"][0]),
            functions=tuple(row["function"]),
            answers=tuple(answers),
        )


def iter_rows(categories: Sequence[str]) -> Iterator[tuple[str, JsonObject, list[Any]]]:
    """Yield (category, row of the case, its accepted answers), category by category, in BFCL's order.

    Raises:
        NotInstalledError: BFCL is not installed.
    """
    folder = find_data_folder()
    for category in categories:
        name = f"BFCL_v4_{category}.json"
        answers = {row["id"]: row["ground_truth"] for row in iter_json_lines(folder / "possible_answer" / name)}
        for row in iter_json_lines(folder / name):
            yield category, row, answers[row["id"]]


def find_data_folder() -> Path:
    """Return the folder of the wheel's data.

    Raises:
        NotInstalledError: BFCL is not installed.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise NotInstalledError
    return Path(spec.submodule_search_locations[0]) / "data"


def iter_json_lines(path: Path) -> Iterator[JsonObject]:
    """Yield the JSON value of each line of a file; blank lines are skipped."""
    with path.open(encoding="utf-8") as lines:
        yield from (json.loads(line) for line in lines if line.strip())


def build_tool(function: JsonObject) -> JsonObject:
    """Return a function of BFCL in OpenAI's format."""
    definition = {"name": function["name"], "description": function["description"]}
    return {"type": "function", "function": {**definition, "parameters": build_json_schema(function["parameters"])}}
