import pytest

from toolbench.lab.planning.run_request import ConfigChoice, LaunchError, RunRequest


def test_run_request_json_round_trip_is_lossless() -> None:
    request = RunRequest(models=(1, 2), configs=(ConfigChoice(1),), overrides={"a": [1]}, scenarios=("x",), seed=4)
    assert RunRequest.from_json(request.to_json()) == request


def test_run_request_from_json_refuses_unknown_field() -> None:
    with pytest.raises(LaunchError) as refused:
        RunRequest.from_json({"modles": [1]})
    assert refused.value.errors == {"modles": ["There is no field named modles."]}


@pytest.mark.parametrize("configs", [[{"profile": "x"}], [{"model": 1, "colour": "red"}], ["x"], [{"model": "1"}]])
def test_run_request_from_json_refuses_malformed_configuration(configs: list[object]) -> None:
    with pytest.raises(LaunchError):
        RunRequest.from_json({"configs": configs})


@pytest.mark.parametrize(
    "value",
    [
        {"trials": "3"},
        {"trials": True},
        {"scenarios": "x"},
        {"scenarios": ["happy_path", 1]},
        {"models": ["1"]},
        {"models": [True]},
        {"streams": [0]},
        {"strategies": [["raw"]]},
        {"seed": "1"},
        {"jobs": 1.5},
        {"overrides": []},
        {"title": None},
    ],
)
def test_run_request_from_json_refuses_wrong_type_by_field(value: dict[str, object]) -> None:
    with pytest.raises(LaunchError) as refused:
        RunRequest.from_json(value)
    assert list(refused.value.errors) == list(value)
