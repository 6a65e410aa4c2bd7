"""Forms of the playground: the plan of a test case's run."""

import json

from django.http import QueryDict

from toolbench.lab.planning.run_request import RunRequest
from toolbench.web.forms.playground import CaseTrialsForm


def test_plan_url_of_case_keeps_settings_of_its_trial() -> None:
    request = RunRequest(
        models=(7,),
        scenarios=("case",),
        trials=20,
        overrides={"max_turns": 3},
        deadline_seconds=30.0,
        enforce_applicability=False,
    )
    path, _, query = CaseTrialsForm.render_plan_url(request).partition("?")
    parameters = QueryDict(query)
    assert (path, parameters["models"], parameters["trials"]) == ("/runs/new/", "7", "20")
    assert json.loads(parameters["overrides"]) == {"max_turns": 3}
    assert (parameters["deadline_seconds"], parameters["every_profile"]) == ("30.0", "on")
    plain = CaseTrialsForm.render_plan_url(RunRequest(models=(7,), scenarios=("case",)))
    assert not {"overrides", "deadline_seconds", "every_profile"} & QueryDict(plain.partition("?")[2]).keys()
