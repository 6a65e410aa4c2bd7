"""Import of BFCL cases, and a run of one of them."""

import json

import pytest
from django.core.management import CommandError, call_command

from tests.lab.scripted_runs import make_scripted_model, run_worker_session
from toolbench.evals.bfcl.cases import iter_cases
from toolbench.evals.bfcl.golden_answers import build_golden_calls
from toolbench.evals.bfcl.scenario import sanitise_name
from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.cases.edit import UnknownCaseError, build_run_request, delete_case
from toolbench.lab.cases.pages import get_case_page, get_editable_case_page
from toolbench.lab.models import Case, CaseSet, CaseVersion
from toolbench.lab.runs.launch import launch
from toolbench.lab.scenarios.catalogue import find_private
from toolbench.providers.scripted_server import ReceivedRequest, ScriptedReply, ScriptedServer, tool_call_reply


@pytest.mark.django_db
def test_import_bfcl_adds_public_cases_once_with_source_and_licence() -> None:
    import_bfcl(["simple_python"], limit=3)
    (again,) = import_bfcl(["simple_python"], limit=4)

    case_set = CaseSet.objects.get()
    assert (case_set.public, case_set.licence) == (True, "Apache 2.0")
    assert "bfcl-eval" in case_set.source
    assert (again.added, again.changed, again.unchanged) == (1, 0, 3)
    assert not find_private(Case.objects.values_list("slug", flat=True))


@pytest.mark.django_db
def test_import_bfcl_changed_case_gets_version_and_is_not_editable() -> None:
    import_bfcl(["simple_python"], limit=1)
    CaseVersion.objects.update(definition="{}")
    (again,) = import_bfcl(["simple_python"], limit=1)

    case = Case.objects.get()
    assert (again.changed, case.current, case.versions.count()) == (1, 2, 2)
    with pytest.raises(UnknownCaseError):
        get_editable_case_page(case.slug)


@pytest.mark.django_db
def test_import_bfcl_adds_deleted_case_again() -> None:
    import_bfcl(["simple_python"], limit=2)
    delete_case(Case.objects.order_by("pk")[0].slug)

    (again,) = import_bfcl(["simple_python"], limit=2)

    assert (again.added, again.changed, again.unchanged) == (1, 0, 1)
    assert set(Case.objects.values_list("deleted_at", "current")) == {(None, 1)}


@pytest.mark.django_db
def test_import_bfcl_moves_cases_of_bundles_into_the_set_of_the_category() -> None:
    import_bfcl(["simple_python"], limit=2)
    CaseSet.objects.update(name="BFCL from bundles, public")
    Case.objects.order_by("pk")[0].versions.update(definition="{}", number=3)
    Case.objects.filter(versions__number=3).update(current=3)

    (again,) = import_bfcl(["simple_python"], limit=3)

    assert (again.added, again.changed, again.unchanged) == (1, 1, 1)
    assert set(Case.objects.values_list("set__name", "current")) == {
        ("BFCL simple_python", 1),
        ("BFCL simple_python", 4),
    }


@pytest.mark.django_db
def test_import_cases_command_refuses_unknown_bfcl_category() -> None:
    with pytest.raises(CommandError, match="There is no BFCL category multi_turn_composite"):
        call_command("import_cases", "bfcl", category=["multi_turn_composite"])


@pytest.mark.django_db(transaction=True)
def test_bfcl_case_golden_calls_pass_and_wrong_argument_is_named() -> None:
    case = next(iter(iter_cases(["multiple"])))
    ((name, arguments),) = build_golden_calls(case)
    key = next(iter(arguments))

    def play(seen: ReceivedRequest) -> ScriptedReply:
        given = arguments if len(provider.seen) % 2 else {**arguments, key: None}
        return tool_call_reply((sanitise_name(name), given))

    import_bfcl(["multiple"], limit=1)
    with ScriptedServer(play) as provider:
        model = make_scripted_model(provider)
        (slug,) = Case.objects.values_list("slug", flat=True)
        launch(build_run_request((slug,), model.pk, 2))
        run_worker_session(model)
    page = get_case_page(slug)
    assert (page.runs[0].answered.k, page.runs[0].answered.n) == (1, 2)
    assert json.loads(page.draft.expect) == list(case.answers)
    assert page.runs[0].cell.scenario_group == "bfcl"
    assert f"$.{key}" in [failed_check.name.rpartition(" ")[2] for failed_check in page.runs[0].failed_checks]


@pytest.mark.django_db
def test_import_cases_command_refuses_negative_limit() -> None:
    with pytest.raises(CommandError, match="--limit has to be 0 or more") as raised:
        call_command("import_cases", "bfcl", limit=-1)
    assert raised.value.returncode == 2
    assert not Case.objects.exists()
