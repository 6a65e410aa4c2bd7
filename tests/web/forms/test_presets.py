from typing import Any

import pytest
from django.http import QueryDict

from toolbench.web.forms.presets import PresetForm


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fix_empty_final_user_text", '"Please answer."'),
        ("fix_empty_final_user_text", "Answer now: "),
        ("fix_empty_final_user_text", "null"),
        ("fix_empty_final_user_text", "{a}"),
        ("tool_denylist", ["null"]),
        ("tool_denylist", ["a, b", "c"]),
        ("tool_denylist", []),
        ("max_turns", 7),
    ],
)
def test_preset_form_saved_unchanged_keeps_each_value(name: str, value: Any) -> None:
    entered = QueryDict(mutable=True)
    entered.update(PresetForm.to_initial({"patch": {name: value}, "description": "A preset.", "name": "mine"}))
    assert PresetForm(entered).build_content() == {"patch": {name: value}, "description": "A preset."}


def test_preset_form_shows_plain_text_where_it_can() -> None:
    initial = PresetForm.to_initial({"patch": {"tool_denylist": ["a", "b"], "method": "native"}, "description": ""})
    assert (initial["set_tool_denylist"], initial["set_method"]) == ("a, b", "native")
