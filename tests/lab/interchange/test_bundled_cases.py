"""Test cases in bundles: imported with their trials, which are replayed and judged there."""

import io
import json
from dataclasses import asdict, replace

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial, recompute_stale_cells
from tests.lab.cases.test_edit import DRAFT, answering, saved, tried
from tests.lab.interchange.bundle_bytes import read_members, reseal_members, write_bundle_bytes
from tests.lab.scripted_runs import make_scripted_model
from toolbench.evals.bfcl.multi_turn.cases import MultiTurnCase
from toolbench.lab.cases.bfcl_import import import_bfcl
from toolbench.lab.cases.drafts import parse_draft
from toolbench.lab.cases.edit import edit_case
from toolbench.lab.cases.files import render_cases
from toolbench.lab.interchange.bundle.read import import_bundle
from toolbench.lab.interchange.bundle.selection import BundleError
from toolbench.lab.interchange.bundled_cases import parse_cases
from toolbench.lab.interchange.row_json import InvalidRowError
from toolbench.lab.models import Case, CaseSet, Model, Provider, Run
from toolbench.lab.replays.check import check_replay
from toolbench.lab.replays.rejudge import get_judging_state, list_run_trials, rejudge_trials
from toolbench.lab.runs import control
from toolbench.lab.runs.action_checks import RunActionError
from toolbench.lab.scenarios.catalogue import load_scenario
from toolbench.providers.scripted_server import ScriptedServer

pytestmark = pytest.mark.django_db(transaction=True)


def import_bytes(bundle: bytes) -> Run:
    return import_bundle(io.BytesIO(bundle), "bundle.zip", owner=None)


def delete_everything() -> None:
    """Delete runs, cases, models and providers, as on another installation."""
    for model in (Run, Case, CaseSet, Model, Provider):
        model.objects.all().delete()


def test_bundle_with_private_cases_is_replayed_after_import() -> None:
    with ScriptedServer(answering(order=17)) as scripted:
        run = tried(saved(replace(DRAFT, title="Late order")), make_scripted_model(scripted), trials=2)
    with pytest.raises(BundleError, match="private, so nothing was exported"):
        write_bundle_bytes(run)
    bundle, manifest = write_bundle_bytes(run, private=True)
    delete_everything()
    copy = import_bytes(bundle)
    case = Case.objects.get()
    assert (case.slug, case.set.public, case.set.source) == ("own-late-order", False, "brought in with a bundle")
    assert check_replay(copy.pk).sentence.startswith("2 of 2 replayed trials have the same verdict and end")
    assert write_bundle_bytes(copy, private=True)[1].evidence == manifest.evidence
    with pytest.raises(BundleError, match="private"):
        write_bundle_bytes(copy)
    with pytest.raises(RunActionError, match="was imported"):
        control.start_repeat(copy.pk, owner=None)


def test_bundle_of_rejudged_run_has_the_version_that_judged() -> None:
    with ScriptedServer(answering(order=17)) as scripted:
        case = saved(replace(DRAFT, title="Late order", expect='{"no_call": true}'))
        run = tried(case, make_scripted_model(scripted), trials=2)
    edit_case(case.slug, *parse_draft(replace(DRAFT, title="Late order")))
    assert rejudge_trials(list_run_trials(run.pk).values_list("pk", flat=True)).judged == 2
    # The new version ends a trial at its first call, the old one at the limit of rounds; all calls stay counted.
    assert list(run.trials.values_list("calls", "type_calls")) == [(12, 12)] * 2
    bundle, _ = write_bundle_bytes(run, private=True)
    delete_everything()

    copy = import_bytes(bundle)

    assert set(Case.objects.get().versions.values_list("number", flat=True)) == {1, 2}
    assert check_replay(copy.pk).holds
    assert get_judging_state(copy.pk).outdated == 0


def test_import_bundle_renames_a_case_with_the_slug_of_another() -> None:
    with ScriptedServer(answering(order=17)) as scripted:
        run = tried(saved(replace(DRAFT, title="Late order")), make_scripted_model(scripted), trials=2)
    bundle, manifest = write_bundle_bytes(run, private=True)
    delete_everything()
    other_case = saved(replace(DRAFT, title="Late order", message="Cancel order 18."))
    copy = import_bytes(bundle)
    assert {cell.scenario for cell in copy.cells.all()} == {trial.scenario for trial in copy.trials.all()}
    assert (other_case.slug, copy.cells.get().scenario) == ("own-late-order", "own-late-ord-2")
    assert load_scenario(other_case.slug).draw_instance(0).user_text == "Cancel order 18."
    assert check_replay(copy.pk).holds
    second_bundle, manifest_again = write_bundle_bytes(copy, private=True)
    compared_names = manifest.members.keys() - {"index.html"}
    assert {name: manifest_again.members[name] for name in compared_names} == {
        name: manifest.members[name] for name in compared_names
    }
    assert b"Cancel order 18." not in b"".join(read_members(second_bundle).values())


def write_case_bundle(case: Case) -> bytes:
    """Write the bundle of a run with one trial of the newest version, and delete everything."""
    run = make_run()
    make_trial(make_cell(make_config(run), case.slug, scenario_version=case.current))
    recompute_stale_cells()
    bundle, _ = write_bundle_bytes(run, private=True)
    delete_everything()
    return bundle


@pytest.mark.parametrize(
    ("title", "public", "scenario"),
    [
        ("Late order", True, "own-late-order"),
        ("An unrelated case", True, "own-late-ord-2"),
        ("Late order", False, "own-late-ord-2"),
    ],
)
def test_import_bundle_adds_a_version_to_the_same_case_only(title: str, public: bool, scenario: str) -> None:
    first_case = saved(replace(DRAFT, title="Late order"))
    CaseSet.objects.update(public=True)
    first_bundle = write_case_bundle(first_case)
    slug = saved(replace(DRAFT, title="Late order")).slug
    second_case = edit_case(slug, title, parse_draft(replace(DRAFT, message="Cancel order 18."))[1])
    CaseSet.objects.update(public=public)
    second_bundle = write_case_bundle(second_case)

    first, second = import_bytes(first_bundle), import_bytes(second_bundle)

    assert (first.cells.get().scenario, second.cells.get().scenario) == ("own-late-order", scenario)
    assert ("Cancel order 18." in render_cases("jsonl")) == public


def test_import_bundle_uses_an_equal_case_of_the_user() -> None:
    bundle = write_case_bundle(saved())
    case = saved()
    CaseSet.objects.update(public=True)
    assert import_bytes(bundle).cells.get().scenario == case.slug
    assert Case.objects.count() == 1


def test_bundle_of_a_bfcl_conversation_can_be_imported() -> None:
    import_bfcl(["multi_turn_base"], limit=1)
    case = Case.objects.get()
    definition = case.versions.get().definition
    run = import_bytes(write_case_bundle(case))
    assert load_scenario(run.cells.get().scenario).title == case.title
    assert Case.objects.get().versions.get().definition == definition


def test_import_bundle_without_a_definition_uses_no_case_of_the_user() -> None:
    with ScriptedServer(answering(order=17)) as scripted:
        run = tried(saved(), make_scripted_model(scripted), trials=1)
    members = read_members(write_bundle_bytes(run, private=True)[0])
    del members["evidence/cases.json"]
    copy = import_bytes(reseal_members(members))
    assert copy.cells.get().scenario != run.cells.get().scenario
    assert check_replay(copy.pk).unknown
    assert b"it is late" not in read_members(write_bundle_bytes(copy, private=True)[0])["plans.json"]


def test_parse_cases_refuses_an_invalid_case_with_a_reason() -> None:
    valid_case = {"slug": "own-a", "version": 1, "title": "A", "kind": "own", "public": False, "definition": "{}"}
    invalid_fields: tuple[tuple[str, object, str], ...] = (
        ("slug", "../x", "is not a slug of a test case"),
        ("version", 0, "has no version"),
        ("kind", "code", "cannot be read"),
        ("definition", '{"tools": []}', "cannot be read"),
        ("definition", "[" * 100_000, "cannot be read"),
        ("title", None, "has no slug, title, kind or definition"),
    )
    for field, value, reason in invalid_fields:
        with pytest.raises(InvalidRowError, match=reason):
            parse_cases({"cases": [valid_case | {field: value}]})


def test_parse_cases_refuses_a_bfcl_conversation_that_cannot_run() -> None:
    conversation = MultiTurnCase(
        id="c", category="multi_turn_base", messages=("Hi",), functions=(), later={}, classes=("MathAPI",), config={},
        answers=((),),
    )  # fmt: skip
    for changes, reason in (
        ({}, ""),
        ({"classes": ("os",)}, "BFCL has no class os"),
        ({"messages": ()}, "cannot be read"),
        ({"answers": (("import os",),)}, "cannot be read"),
    ):
        definition = json.dumps(asdict(replace(conversation, **changes)))
        row = {"slug": "c", "version": 1, "title": "C", "kind": "bfcl", "public": True, "definition": definition}
        if not reason:
            assert parse_cases({"cases": [row]})
            continue
        with pytest.raises(InvalidRowError, match=reason):
            parse_cases({"cases": [row]})
