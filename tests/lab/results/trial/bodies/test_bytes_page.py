"""The exact bytes of a step, in which nothing hides."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import Run, Step
from toolbench.lab.results.trial.bodies.bytes_page import PAGE_BYTES, get_bytes, get_bytes_page, split_invisible

RAW = b'{"a":\r\n\t"\x00\xff\xc3\xa9\xe2\x80\xae"}'


def stored(response: bytes) -> Step:
    trial = make_trial(make_cell(make_config(make_run())))
    return make_step(trial, bodies={"response": response})


def text(raw: bytes) -> str:
    return "".join(piece.text for piece in split_invisible(raw))


def test_split_invisible_escapes_only_what_cannot_be_seen() -> None:
    assert text(RAW) == '{"a":\\r\\n\n\\t"\\x00\\xffé\\xe2\\x80\\xae"}'
    assert next(piece.text for piece in split_invisible(RAW) if piece.escaped) == "\\r\\n\n\\t"


def test_escape_written_by_a_model_is_shown_as_text() -> None:
    assert [piece.escaped for piece in split_invisible(b"a\\x00b")] == [False]


@pytest.mark.django_db
def test_pages_cut_no_character_and_lose_no_byte() -> None:
    raw = "é".encode() * PAGE_BYTES + b"x" + "€".encode() * 10
    step = stored(b"a" + raw)
    first = get_bytes_page(step.pk, "response", 1)
    pages = [get_bytes_page(step.pk, "response", number) for number in range(1, first.pages + 1)]
    assert "".join(piece.text for page in pages for piece in page.parts) == (b"a" + raw).decode()
    assert [(page.first, page.last) for page in pages[:2]] == [
        (1, PAGE_BYTES + 1),
        (PAGE_BYTES + 2, 2 * PAGE_BYTES + 1),
    ]
    assert (pages[-1].last, first.size) == (len(raw) + 1, len(raw) + 1)


@pytest.mark.django_db
def test_a_page_beyond_the_end_shows_the_last_and_nothing_is_no_trouble() -> None:
    assert get_bytes_page(stored(b"abc").pk, "response", 99).page == 1
    empty = get_bytes_page(stored(b"").pk, "response", 1)
    assert (empty.size, empty.pages, empty.parts) == (0, 1, ())


@pytest.mark.django_db
def test_the_whole_is_what_was_stored() -> None:
    assert get_bytes(stored(RAW).pk, "response")[1] == RAW


@pytest.mark.django_db
def test_steps_of_a_deleted_run_are_gone() -> None:
    step = stored(RAW)
    Run.objects.update(deleted_at="2026-01-01T00:00Z")
    with pytest.raises(Step.DoesNotExist):
        get_bytes_page(step.pk, "response", 1)
