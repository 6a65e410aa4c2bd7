"""Commands with the id of a run or the name of a scenario."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("command", "words", "sentence"),
    [
        (["rejudge", "987654"], {}, "There is no run 987654."),
        (["rejudge"], {"scenario": "happy_pth"}, "There is no scenario 'happy_pth'; the nearest: happy_path"),
        (["rejudge"], {"scenario": ""}, "There is no scenario ''; there are happy_path"),
        (["rejudge"], {}, "Name either a run or --scenario SLUG"),
        (["reclassify"], {"run": 987654}, "There is no run 987654."),
        (["replay", "987654"], {}, "There is no run 987654."),
        (["report", "987654", "--out=no-such-folder"], {}, "There is no run 987654."),
        (["bundle", "987654"], {}, "There is no run 987654."),
        (["resend", "987654"], {}, "There is no trial 987654."),
        (["import_cases", "bfcl"], {"category": ["simple_pyton"]}, "There is no BFCL category simple_pyton"),
    ],
)
def test_commands_with_an_unknown_name_exit_with_2(command: list[str], words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(CommandError) as raised:
        call_command(*command, **words)

    assert raised.value.returncode == 2
    assert sentence in str(raised.value)


@pytest.mark.parametrize("slug", ["happy_path", "chat_only"])
def test_rejudge_of_a_known_scenario_without_trials_says_so(slug: str) -> None:
    output = StringIO()
    call_command("rejudge", scenario=slug, stdout=output)
    assert output.getvalue() == "0 trials re-judged. No request was sent.\n"
