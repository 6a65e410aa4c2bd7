"""The exact bytes of a step, with invisible ones escaped."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import Run, Step
from toolbench.lab.results.trial.bodies.bytes_page import PAGE_BYTES, get_bytes, get_bytes_page, split_invisible

RAW = b'{"a":\r\n\t"\x00\xff\xc3\xa9\xe2\x80\xae"}'


def make_response_step(response: bytes) -> Step:
    trial = make_trial(make_cell(make_config(make_run())))
    return make_step(trial, bodies={"response": response})


def join_parts(raw: bytes) -> str:
    return "".join(piece.text for piece in split_invisible(raw))


def test_split_invisible_escapes_only_invisible_bytes() -> None:
    assert join_parts(RAW) == '{"a":\\r\\n\n\\t"\\x00\\xffé\\xe2\\x80\\xae"}'
    assert next(piece.text for piece in split_invisible(RAW) if piece.escaped) == "\\r\\n\n\\t"


def test_split_invisible_does_not_mark_a_written_escape() -> None:
    assert [piece.escaped for piece in split_invisible(b"a\\x00b")] == [False]


@pytest.mark.django_db
def test_bytes_page_splits_no_character_and_loses_no_byte() -> None:
    raw = "é".encode() * PAGE_BYTES + b"x" + "€".encode() * 10
    step = make_response_step(b"a" + raw)
    first = get_bytes_page(step.pk, "response", 1)
    pages = [get_bytes_page(step.pk, "response", number) for number in range(1, first.pages + 1)]
    assert "".join(piece.text for page in pages for piece in page.parts) == (b"a" + raw).decode()
    assert [(page.first, page.last) for page in pages[:2]] == [
        (1, PAGE_BYTES + 1),
        (PAGE_BYTES + 2, 2 * PAGE_BYTES + 1),
    ]
    assert (pages[-1].last, first.size) == (len(raw) + 1, len(raw) + 1)


@pytest.mark.django_db
def test_bytes_page_beyond_the_end_or_of_an_empty_body_is_page_one() -> None:
    assert get_bytes_page(make_response_step(b"abc").pk, "response", 99).page == 1
    empty = get_bytes_page(make_response_step(b"").pk, "response", 1)
    assert (empty.size, empty.pages, empty.parts) == (0, 1, ())


@pytest.mark.django_db
def test_get_bytes_returns_exactly_the_stored_bytes() -> None:
    assert get_bytes(make_response_step(RAW).pk, "response")[1] == RAW


@pytest.mark.django_db
def test_bytes_page_of_a_deleted_run_raises_does_not_exist() -> None:
    step = make_response_step(RAW)
    Run.objects.update(deleted_at="2026-01-01T00:00Z")
    with pytest.raises(Step.DoesNotExist):
        get_bytes_page(step.pk, "response", 1)
