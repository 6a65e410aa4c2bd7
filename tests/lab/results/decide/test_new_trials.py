"""New trials of configurations that cannot be tried in one run."""

import pytest

from tests.factories import make_config, make_model, make_run
from toolbench.lab.results.decide.new_trials import NewTrialsError, NewTrialsRequest, build_new_trials_request

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("modes", "kinds"), [(("enforced", "relaxed"), ("drawn", "drawn")), (("enforced", "enforced"), ("drawn", "parity"))]
)
def test_new_trials_of_different_run_settings_are_refused(modes: tuple[str, str], kinds: tuple[str, str]) -> None:
    model = make_model()
    configs = [
        make_config(make_run(instance_kind=kind), model, tool_use_mode=mode)
        for mode, kind in zip(modes, kinds, strict=True)
    ]
    config_ids, hashes = tuple(config.pk for config in configs), tuple(config.policy_hash for config in configs)
    request = NewTrialsRequest(config_ids, hashes, ("happy_path",), 5)
    with pytest.raises(NewTrialsError, match="differ in tool-use mode or instance kind"):
        build_new_trials_request(request, title="t", purpose="")
