"""Launch form: the texts of its plan."""

import pytest
from django.test import Client

from tests.page_html import read_html
from tests.web.views.test_runs import build_form, make_local_model

pytestmark = pytest.mark.django_db


def test_launch_form_names_one_trial_in_the_singular(owner_client: Client) -> None:
    form = build_form(make_local_model(), trials="1", request_cap="1", token_cap="5000")
    text = read_html(owner_client.get("/runs/new/", form))
    assert "Start 1 trial<" in text
    assert "1 request, 5,000 tokens" in text
