"""Parser of histories: one JSON object per line, each a turn recorded by another program.

The fields are listed in docs/imports.md.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from toolbench.engine.bounds import MAX_TOKENS, VALID_YEARS, filter_valid_date, parse_count

MAX_LINES = 1_000_000
MAX_LINE_BYTES = 1 << 20
MAX_PROBLEMS_SHOWN = 20  # in one error message


class HistoryImportError(Exception):
    """History that is not imported; the message gives the reason or lists invalid lines. Nothing of it is stored."""


def _parse_time(value: object) -> object:
    """Return the moment of a text in ISO 8601. AwareDatetime then refuses a moment without a time zone.

    Raises:
        ValueError: the value is not a text in ISO 8601, or the moment has a time zone and is outside VALID_YEARS.
    """
    if not isinstance(value, str):
        raise ValueError("is not a time in ISO 8601")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo and filter_valid_date(moment) is None:
        raise ValueError(f"is not a time between {VALID_YEARS[0]} and {VALID_YEARS[-1]}")
    return moment


def _parse_count(value: object) -> int:
    count = parse_count(value)
    if count is None:
        raise ValueError(f"is not a whole number from 0 to {MAX_TOKENS:,}")
    return count


_WITHOUT_NUL = r"^[^\x00]*$"  # PostgreSQL cannot store NUL
NameText = Annotated[str, Field(max_length=200, pattern=_WITHOUT_NUL)]
WholeNumber = Annotated[int, BeforeValidator(_parse_count)]


class HistoryProbe(BaseModel):
    """Result of a probe that the other program sent with a turn."""

    model_config = ConfigDict(strict=True)

    ok: bool
    error: str | None = None


class HistoryParseFailure(BaseModel):
    """Call that the other program could not parse.

    Attributes:
        mode: the other program's name for its way of parsing the call.
        error: the reason.
        snippet: text of the call.
    """

    model_config = ConfigDict(strict=True)

    mode: Annotated[str, Field(max_length=20, pattern=_WITHOUT_NUL)]
    error: Annotated[str, Field(min_length=1)]
    snippet: str = ""


class HistoryLine(BaseModel):
    """Turn of a history, parsed from one line.

    Attributes:
        strategy: the method that the turn used, stored as its path.
        called: whether the turn attempted a call.
        ok: whether the turn succeeded; None if unknown.
    """

    model_config = ConfigDict(strict=True, extra="ignore")

    model: Annotated[NameText, Field(min_length=1)]
    strategy: Annotated[str, Field(min_length=1, max_length=20, pattern=r"^[a-z0-9_]+$")]
    called: bool
    conversation: NameText = ""
    turn: WholeNumber | None = None
    step: WholeNumber | None = None
    at: Annotated[AwareDatetime, BeforeValidator(_parse_time)] | None = None
    prompt_version: Annotated[str, Field(max_length=80, pattern=_WITHOUT_NUL)] = ""
    ok: bool | None = None
    retries: WholeNumber = 0
    probe: HistoryProbe | None = None
    parse_error: HistoryParseFailure | None = None

    @model_validator(mode="after")
    def _check_parse_error_has_call(self) -> "HistoryLine":
        if self.parse_error and not self.called:
            raise ValueError("parse_error is set although called is false")
        return self


def parse_lines(lines: Iterable[bytes]) -> list[tuple[int, HistoryLine]]:
    """Return the turns, each with the number of its line, from 1. Blank lines count as lines, but have no turn.

    Raises:
        HistoryImportError: lines are not valid (the message lists the first MAX_PROBLEMS_SHOWN), there is no turn, or
            there are more than MAX_LINES lines.
    """
    turns: list[tuple[int, HistoryLine]] = []
    problems: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number > MAX_LINES:
            raise HistoryImportError(
                f"The history has more than {MAX_LINES:,} lines. Nothing was imported. Split the file."
            )
        if not line.strip():
            continue
        if len(problems) == MAX_PROBLEMS_SHOWN:
            problems.append("Later lines were not checked.")
            break
        try:
            turns.append((number, _parse_turn(line)))
        except ValueError as error:
            problems.append(f"line {number}: {error}")
    if problems:
        raise HistoryImportError("\n".join([*problems, "Nothing was imported."]))
    if not turns:
        raise HistoryImportError("The history contains no turn. Nothing was imported.")
    return turns


def _parse_turn(line: bytes) -> HistoryLine:
    """Parse the turn of a line. A field in the object's `meta` has precedence over the same field in the object.

    Raises:
        ValueError: the line cannot be read; the message tells the user why.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"it has {len(line):,} bytes; the limit is {MAX_LINE_BYTES:,}")
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    meta = document.get("meta")
    try:
        return HistoryLine.model_validate(document | meta if isinstance(meta, dict) else document)
    except ValidationError as error:
        first_error = error.errors()[0]
        field_path = ".".join(map(str, first_error["loc"]))
        message = first_error["msg"]
        raise ValueError(f"{field_path}: {message}" if field_path else message) from None
