"""Form field for a JSON object: its value, or a message with the position of the error."""

import pytest
from django.forms import ValidationError

from toolbench.web.forms.json_object import JsonObjectField


@pytest.mark.parametrize(("text", "value"), [("", {}), ("  ", {}), ('{"max_turns": 2}', {"max_turns": 2})])
def test_json_object_field_reads_object_and_blank(text: str, value: object) -> None:
    assert JsonObjectField(required=False).clean(text) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "This is not JSON: .* line 1 column 2"),
        ("nonsense", "This is not JSON: .* line 1 column 1"),
        ("[" * 100_000, "nested deeper than 128 levels"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e999}', "too large a number"),
        ('{"user": "\\u0000"}', "cannot be stored"),
        ('{"\\ud800": 1}', "cannot be stored"),
        ("9" * 5000, "This is not JSON"),
        ("[1]", "must be a JSON object"),
    ],
)
def test_json_object_field_refuses_other_text_with_message(text: str, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        JsonObjectField(required=False).clean(text)
