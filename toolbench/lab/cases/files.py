"""Import and export of user cases as JSON Lines or YAML."""

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml
from django.db.models import F

from toolbench.engine.types import JsonObject
from toolbench.evals.user_cases.documents import DocumentError, find_line, read_document
from toolbench.evals.user_cases.parse import CaseProblem, InvalidCaseError, parse_case
from toolbench.lab.cases.drafts import MAX_PROBLEMS_SHOWN, build_default_title
from toolbench.lab.cases.edit import SLUG_PREFIX
from toolbench.lab.cases.merge_import import CaseImportResult, ParsedCase, merge_cases
from toolbench.lab.credentials.known_secrets import load_known_secrets
from toolbench.lab.models import CaseSet, CaseVersion

MAX_CASES_PER_FILE = 5000
_FILE_KEYS = ("slug", "title", "set")  # keys in a file that are not part of the case's definition
_LINE_BREAK = re.compile(r"\r\n?|\n")  # JSON texts may contain the other line breaks of `str.splitlines`
_SLUG_PATTERN = re.compile(rf"{SLUG_PREFIX}[a-z0-9_-]{{1,52}}")


class CaseImportError(Exception):
    """Failed import; no case was saved.

    Attributes:
        sentences: the problems, each with its line if it has one.
    """

    def __init__(self, sentences: list[str]) -> None:
        self.sentences = sentences
        super().__init__(" ".join(sentences))


def render_cases(file_format: str, *, private: bool = False) -> str:
    """Return the newest versions of all user cases as an ASCII text, with known secrets masked.

    Args:
        file_format: "yaml"; any other value means JSON Lines.
        private: whether cases of private sets are included.
    """
    rows = CaseVersion.objects.filter(
        case__deleted_at=None, case__set__kind=CaseSet.Kind.OWN, number=F("case__current")
    )
    rows = rows if private else rows.filter(case__set__public=True)
    rows = rows.select_related("case__set").order_by("case__set_id", "case_id")
    lines = "".join(f"{json.dumps(_case_to_json(row))}\n" for row in rows)
    masked_lines = load_known_secrets().masker.mask_body(lines.encode(), join_parts=False).decode()
    if file_format == "yaml":
        return yaml.safe_dump([json.loads(line) for line in masked_lines.splitlines()], sort_keys=False, width=100)
    return masked_lines


def import_cases(text: str, set_name: str = "") -> CaseImportResult:
    """Import all cases of a text; import none if one is not valid.

    Args:
        text: JSON Lines, JSON or YAML.
        set_name: name of the set of new cases; empty for the set that each case names.

    Raises:
        CaseImportError: the text has no case, more than MAX_CASES_PER_FILE, or a mistake; the exception has the first
            MAX_PROBLEMS_SHOWN problems of cases.
        InvalidFieldsError: as in `add_cases`.
    """
    text = text.removeprefix("\ufeff")  # a byte order mark
    cases: list[ParsedCase] = []
    sentences: list[str] = []
    slugs: set[str] = set()
    try:
        for line, place, document in _iter_items(text):
            try:
                cases.append(_parse_case(document, slugs))
            except InvalidCaseError as error:
                sentences += [
                    f"Line {line or find_line(text, (*place, *problem.place)) or 1}: {problem.message}"
                    for problem in error.problems[: max(0, MAX_PROBLEMS_SHOWN - len(sentences))]
                ]
    except DocumentError as error:
        sentences.append(f"Line {error.line or 1}, column {error.column or 1}: {error.message}")
    if not cases and not sentences:
        sentences.append("The text contains no test case.")
    if len(cases) > MAX_CASES_PER_FILE:
        sentences.append(f"The text contains {len(cases):,} test cases. Import at most {MAX_CASES_PER_FILE:,} at once.")
    if sentences:
        raise CaseImportError(sentences)
    return merge_cases(cases, set_name)


def _case_to_json(row: CaseVersion) -> JsonObject:
    file_keys = {"slug": row.case.slug, "title": row.case.title, "set": row.case.set.name}
    return {**file_keys, **json.loads(row.definition)}


def _iter_items(text: str) -> Iterator[tuple[int | None, tuple[int, ...], Any]]:
    """Yield the documents of the cases.

    Yields:
        The line of the case, its path in the text and its document. If each line is a document, the path is (). If the
        text is one document, the line is None and has to be found by the path.

    Raises:
        DocumentError: the text cannot be read.
    """
    lines = [(number, line) for number, line in enumerate(_LINE_BREAK.split(text), 1) if line.strip()]
    if lines and all(line.lstrip().startswith("{") and line.rstrip().endswith("}") for _, line in lines):
        for number, line in lines:
            try:
                yield number, (), read_document(line)
            except DocumentError as error:
                raise DocumentError(error.message, number, error.column) from error
        return
    document = read_document(text)
    if isinstance(document, list):
        for index, item in enumerate(document):
            yield None, (index,), item
    elif document is not None:
        yield None, (), document


def _get_text(document: JsonObject, key: str) -> str:
    value = document.get(key)
    return value if isinstance(value, str) else ""


def _parse_case(document: Any, slugs: set[str]) -> ParsedCase:
    """Return the parsed case and add its slug to `slugs`.

    Args:
        document: one item of the file.
        slugs: slugs of the earlier cases.

    Raises:
        InvalidCaseError: the case is not valid, or an earlier case has its slug.
    """
    if not isinstance(document, dict):
        return ParsedCase("", parse_case(document))  # raises, since a case must be an object
    case = parse_case({key: value for key, value in document.items() if key not in _FILE_KEYS})
    slug, title, set_name = (_get_text(document, key) for key in _FILE_KEYS)
    if document.get("slug") is not None and not _SLUG_PATTERN.fullmatch(slug):
        raise InvalidCaseError(
            [CaseProblem(("slug",), f"A slug begins with {SLUG_PREFIX}, followed by 1 to 52 of a-z, 0-9, - and _.")]
        )
    if slug in slugs:
        raise InvalidCaseError(
            [CaseProblem(("slug",), f"An earlier test case has the slug {slug} too. Change one of them.")]
        )
    if slug:
        slugs.add(slug)
    return ParsedCase(title or build_default_title(case), case, slug, set_name)
