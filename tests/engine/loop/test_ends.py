from toolbench.engine.events import ANSWERS, End
from toolbench.engine.loop.ends import CATEGORY


def test_every_end_has_the_case_studys_category() -> None:
    assert set(CATEGORY) == set(End)


def test_too_many_turns_is_an_exception_in_the_case_study() -> None:
    assert CATEGORY[End.MAX_TURNS_EXCEEDED] == "EXCEPTION"
    assert CATEGORY[End.FINAL] == ""


def test_an_answer_cut_at_the_token_limit_is_an_answer_and_left_to_the_assertions() -> None:
    assert End.LENGTH in ANSWERS
    assert CATEGORY[End.LENGTH] == ""
