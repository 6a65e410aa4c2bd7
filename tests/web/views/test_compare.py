"""The compare page: its address is its state, and it says no more than the figures."""

import pytest
from django.test import Client

from tests.factories import make_cell, make_config, make_run, make_trials

pytestmark = pytest.mark.django_db


def address(first: tuple[int, int], second: tuple[int, int]) -> str:
    runs = []
    for passed, failed in (first, second):
        run = make_run()
        make_trials(make_cell(make_config(run)), **{"pass": passed, "fail": failed})
        runs.append(run.pk)
    return f"/compare/?a_run={runs[0]}&b_run={runs[1]}"


def test_sides_that_cannot_be_told_apart_are_not_ranked(owner_client: Client) -> None:
    text = owner_client.get(address((36, 4), (40, 0))).content.decode()
    assert "No difference shown" in text
    assert "p = 0.116" in text
    assert "more trials a side would find 7 points" in text


def test_a_difference_is_named_with_interval_and_p(owner_client: Client) -> None:
    text = owner_client.get(address((28, 12), (40, 0))).content.decode()
    assert "is better: +30.0 points" in text
    assert "p &lt; 0.001" in text


def test_without_sides_the_page_asks_for_them(owner_client: Client) -> None:
    assert "Compare two sides" in owner_client.get("/compare/").content.decode()


def test_what_cannot_be_read_is_left_out_and_named(owner_client: Client) -> None:
    response = owner_client.get("/compare/?a_run=x&b_day=yesterday&metric=luck&points=0")
    assert "Not understood and left out: a_run, b_day, metric, points." in response.content.decode()


def test_sides_without_anything_in_common_are_said_to_have_nothing(owner_client: Client) -> None:
    assert "Nothing that both sides have" in owner_client.get("/compare/?a_run=1&b_run=2").content.decode()
