"""Actions of the run page: the fields that the page for confirming paid requests sends again."""

from toolbench.web.forms.run_actions import parse_action


def test_repeated_fields_contain_limits_without_which_they_would_be_lifted() -> None:
    sent = {"action": "raise", "request_cap": "900", "token_cap": "", "csrfmiddlewaretoken": "x", "agreed": "1"}
    assert parse_action(sent).repeated_fields == {"action": "raise", "request_cap": "900", "token_cap": ""}
