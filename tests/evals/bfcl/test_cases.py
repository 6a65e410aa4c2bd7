import json
from dataclasses import asdict

import pytest

from toolbench.evals.bfcl.cases import CATEGORIES, BfclCase, iter_cases


def test_iter_cases_yields_all_single_turn_python_cases() -> None:
    counts = {category: len(list(iter_cases([category]))) for category in CATEGORIES}

    assert sum(counts.values()) == 2351
    assert counts["live_multiple"] == 1053


def test_bfcl_case_has_question_json_schema_tools_and_accepted_answers() -> None:
    first = next(iter_cases(["simple_python"]))

    assert first.id == "simple_python_0"
    assert first.question[0]["role"] == "user"
    function = first.tools[0]["function"]
    assert function["parameters"]["type"] == "object"
    assert set(first.answers[0]) == {function["name"]}


@pytest.mark.parametrize("answers", [[], None, [{}], [{"f": {}, "g": {}}], ["f"]])
def test_bfcl_case_from_json_refuses_answers_without_one_function_each(answers: object) -> None:
    case = next(iter_cases(["simple_python"]))
    document = json.loads(json.dumps(asdict(case)))
    assert BfclCase.from_json(document) == case
    with pytest.raises(ValueError, match="answers must have one object per expected call"):
        BfclCase.from_json({**document, "answers": answers})
