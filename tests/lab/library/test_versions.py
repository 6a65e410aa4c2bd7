"""Versions of entries of the library that several persons save."""

import pytest

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.library.presets import create_preset, edit_preset


@pytest.mark.django_db
@pytest.mark.parametrize(("username", "news"), [("ann", "ann saved version 2"), ("", "Version 2 was saved")])
def test_edit_preset_after_another_save_names_who_saved(username: str, news: str) -> None:
    contents = [{"patch": {"max_turns": number}, "description": ""} for number in (3, 4, 5)]
    preset = create_preset("mine", contents[0], "")
    edit_preset(preset, contents[1], 1, username)
    with pytest.raises(InvalidFieldsError, match=f"{news} meanwhile."):
        edit_preset(preset, contents[2], 1, "ben")
