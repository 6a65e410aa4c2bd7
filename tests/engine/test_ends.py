from toolbench.engine.ends import CATEGORY
from toolbench.engine.events import End


def test_every_end_has_the_case_studys_category() -> None:
    assert set(CATEGORY) == set(End)


def test_too_many_turns_is_an_exception_in_the_case_study() -> None:
    assert CATEGORY[End.MAX_TURNS_EXCEEDED] == "EXCEPTION"
    assert CATEGORY[End.FINAL] == ""
