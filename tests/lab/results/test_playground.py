"""Data of the playground's pages."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial
from toolbench.lab.cases.conversations import parse_message, save_message
from toolbench.lab.cases.drafts import CaseDraft
from toolbench.lab.cases.edit import UnknownCaseError
from toolbench.lab.models import Run
from toolbench.lab.results.playground import get_conversation


@pytest.mark.django_db
def test_get_conversation_in_an_unknown_version_raises_unknown_case_error() -> None:
    case = save_message(*parse_message(CaseDraft(message="Hello"), "", None))
    cell = make_cell(make_config(make_run(purpose=Run.PLAYGROUND)), case.slug)
    imported = make_trial(cell, scenario_version=7)
    make_trial(cell)
    assert get_conversation(case.slug).is_sent
    with pytest.raises(UnknownCaseError, match="has no version 7"):
        get_conversation(case.slug, imported.pk)
