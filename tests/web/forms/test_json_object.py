"""JSON written by hand: an object, or a sentence that says what is wrong and where."""

import pytest
from django.forms import ValidationError

from toolbench.web.forms.json_object import JsonObjectField


@pytest.mark.parametrize(("text", "value"), [("", {}), ("  ", {}), ('{"max_turns": 2}', {"max_turns": 2})])
def test_an_object_is_read_and_blank_is_empty(text: str, value: object) -> None:
    assert JsonObjectField(required=False).clean(text) == value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "This is not JSON: line 1, column 2"),
        ("nonsense", "This is not JSON: line 1, column 1"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "This is not JSON"),
        ("[1]", "must be a JSON object"),
    ],
)
def test_anything_else_gets_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(ValidationError, match=sentence):
        JsonObjectField(required=False).clean(text)
