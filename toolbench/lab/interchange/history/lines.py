"""Parser of histories: one JSON object per line, each a turn recorded by another program.

The fields are listed in docs/imports.md.
"""

import json
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from toolbench.engine.bounds import MAX_TOKENS, VALID_YEARS, check_year, parse_count

MAX_LINES = 1_000_000
MAX_LINE_BYTES = 1 << 20
MAX_FAULTS_SHOWN = 20  # in one error message


class HistoryImportError(Exception):
    """A history that is not imported; its message lists the faulty lines. Nothing of the history is stored."""


def _parse_time(value: object) -> object:
    """Return the moment of a text in ISO 8601; a number is not accepted.

    Raises:
        ValueError: the value is not such a text, or an aware moment is outside VALID_YEARS.
    """
    if not isinstance(value, str):
        raise ValueError("is no time in ISO 8601")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo and check_year(moment) is None:
        raise ValueError(f"is no time between {VALID_YEARS[0]} and {VALID_YEARS[-1]}")
    return moment


def _parse_count(value: object) -> int:
    count = parse_count(value)
    if count is None:
        raise ValueError(f"is no whole number from 0 to {MAX_TOKENS:,}")
    return count


NameText = Annotated[str, Field(max_length=200, pattern=r"^[^\x00]*$")]
WholeNumber = Annotated[int, BeforeValidator(_parse_count)]


class HistoryProbe(BaseModel):
    """Result of a probe that the other program sent with a turn."""

    model_config = ConfigDict(strict=True)

    ok: bool
    error: str | None = None


class HistoryParseFailure(BaseModel):
    """A call that the other program could not read, with the reason."""

    model_config = ConfigDict(strict=True)

    mode: Annotated[str, Field(max_length=20, pattern=r"^[^\x00]*$")]
    error: Annotated[str, Field(min_length=1)]
    snippet: str = ""


class HistoryLine(BaseModel):
    """A turn of a history.

    Attributes:
        strategy: the path that the turn took.
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
    prompt_version: Annotated[str, Field(max_length=80, pattern=r"^[^\x00]*$")] = ""
    ok: bool | None = None
    retries: WholeNumber = 0
    probe: HistoryProbe | None = None
    parse_error: HistoryParseFailure | None = None

    @model_validator(mode="after")
    def _check_parse_error_has_call(self) -> "HistoryLine":
        if self.parse_error and not self.called:
            raise ValueError("parse_error says that a call was attempted, called says that none was")
        return self


def parse_lines(lines: Iterable[bytes]) -> list[tuple[int, HistoryLine]]:
    """Return (line number, turn) pairs. Lines are numbered from 1; blank lines are ignored.

    Raises:
        HistoryImportError: a line cannot be read (the message has the first 20 faults), there is no turn, or there are
            more than a million lines.
    """
    turns: list[tuple[int, HistoryLine]] = []
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number > MAX_LINES:
            raise HistoryImportError(f"The history has more than {MAX_LINES:,} lines: split it. Nothing was imported.")
        if not line.strip():
            continue
        try:
            turns.append((number, _parse_turn(line)))
        except ValueError as error:
            faults.append(f"line {number}: {error}")
        if len(faults) == MAX_FAULTS_SHOWN:
            faults.append("and perhaps more after it")
            break
    if faults:
        raise HistoryImportError("\n".join([*faults, "Nothing was imported."]))
    if not turns:
        raise HistoryImportError("There is no turn in the history. Nothing was imported.")
    return turns


def _parse_turn(line: bytes) -> HistoryLine:
    """Return the turn of a line. A field in the object's `meta` takes precedence over one in the object itself.

    Raises:
        ValueError: the line cannot be read; the message is meant for the user.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"it has {len(line):,} bytes; {MAX_LINE_BYTES:,} are taken")
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON ({error})") from None
    if not isinstance(document, dict):
        raise ValueError("no JSON object")
    meta = document.get("meta")
    try:
        return HistoryLine.model_validate(document | meta if isinstance(meta, dict) else document)
    except ValidationError as error:
        first = error.errors()[0]
        field_path = ".".join(map(str, first["loc"]))
        raise ValueError(f"{field_path}: {first['msg']}" if field_path else first["msg"]) from None
