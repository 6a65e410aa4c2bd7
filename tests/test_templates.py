"""Templates: they compile, follow the content policy and have no CSRF token in GET forms."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template.loader import get_template

FOLDER = Path(settings.BASE_DIR) / "templates"
NAMES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.html"))
FORM = re.compile(r"<form\b[^>]*>.*?</form>", re.DOTALL)
GETS = re.compile(r'<form\b(?![^>]*method="post")|formmethod="get"|<form\b[^>]*\shx-get=')
HEADING = re.compile(r'<h[1-6][^>]*\bid="([^"]+)"[^>]*>\s*([^<]*?)\s*<')
HEADED_SECTION = re.compile(r'<section\b[^>]*aria-labelledby="([^"]+)"')
NAMED_REGION = re.compile(r'(?:<section\b[^>]*|role="region"\s+)aria-label="([^"]+)"')
KEY_HINT_OR_LIST = re.compile(r'<dt>.*?</dt>|<([a-z]+)\b[^>]*\bclass="key-hint"[^>]*>.*?</\1>', re.DOTALL)
COMMENTS_AND_TAGS = re.compile(r"{#.*?#}|{%.*?%}|{{.*?}}|<[^>]*>", re.DOTALL)
BARE_CASE = re.compile(r"(?<!test )(?<!lower )\bcases?\b(?! study)(?! and white space)", re.IGNORECASE)
INLINE_SCRIPT = re.compile(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)|\son[a-z]+=|javascript:", re.IGNORECASE)


@pytest.mark.parametrize("name", NAMES)
def test_template_compiles(name: str) -> None:
    assert get_template(name) is not None


@pytest.mark.parametrize("name", NAMES)
def test_template_includes_only_existing_templates(name: str) -> None:
    included = re.findall(r'{% (?:include|include_cached|extends) "([^"#]+)', (FOLDER / name).read_text())

    assert [path for path in included if not (FOLDER / path).exists()] == []


@pytest.mark.parametrize("name", NAMES)
def test_template_included_without_context_has_no_csrf_token(name: str) -> None:
    """The token is not part of the context of an `include` with `only`, so each form would be refused."""
    isolated = re.findall(r'{% include "([^"]+)"[^%]* only %}', (FOLDER / name).read_text())

    assert [path for path in isolated if "{% csrf_token %}" in (FOLDER / path).read_text()] == []


@pytest.mark.parametrize("name", NAMES)
def test_template_lines_have_120_characters_at_most(name: str) -> None:
    long = [number for number, line in enumerate((FOLDER / name).read_text().splitlines(), 1) if len(line) > 120]

    assert long == []


@pytest.mark.parametrize("name", NAMES)
def test_template_shows_dates_with_shared_filters(name: str) -> None:
    """The filter `date` is for attributes of `time`, and for a month; `moment` and `day` are for readers."""
    formats = re.findall(r"\|(?:date|time)(?::\s*[\"']([^\"']*))?", (FOLDER / name).read_text())

    assert set(formats) <= {"c", "F Y"}


@pytest.mark.parametrize("name", NAMES)
def test_template_has_no_inline_script_and_no_external_address(name: str) -> None:
    text = (FOLDER / name).read_text()

    assert INLINE_SCRIPT.findall(text) == []
    assert re.findall(r"""(?:src|href)=["'](?:https?:)?//""", text) == []


@pytest.mark.parametrize("name", NAMES)
def test_template_contains_no_hard_coded_address(name: str) -> None:
    """The address of the first page is exempt, since error pages link to it."""
    assert re.findall(r"""(?:href|action|hx-get|hx-post)="/[a-z][^"]*\"""", (FOLDER / name).read_text()) == []


@pytest.mark.parametrize("name", NAMES)
def test_template_calls_cases_of_users_test_cases(name: str) -> None:
    text = " ".join(COMMENTS_AND_TAGS.sub("", (FOLDER / name).read_text()).split())

    assert BARE_CASE.findall(text) == []


@pytest.mark.parametrize("name", NAMES)
def test_template_get_form_has_no_csrf_token(name: str) -> None:
    """A button that posts may carry the token as its own value: it is sent with that button alone."""
    forms = FORM.findall((FOLDER / name).read_text())

    assert [form[:80] for form in forms if GETS.search(form) and "{% csrf_token %}" in form] == []


@pytest.mark.parametrize("name", NAMES)
def test_template_regions_have_different_names(name: str) -> None:
    text = (FOLDER / name).read_text()
    headings = dict(HEADING.findall(text))
    headed = set(HEADED_SECTION.findall(text)) & headings.keys()  # a section may stand in two branches of a condition
    names = [headings[key] for key in headed] + NAMED_REGION.findall(text)

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("name", NAMES)
def test_template_hints_of_keys_are_hidden_on_a_phone(name: str) -> None:
    """Keys in the list of all keys, which are in `dt`, are exempt."""
    text = KEY_HINT_OR_LIST.sub("", (FOLDER / name).read_text())

    assert re.findall(r"<kbd.*", text) == []
