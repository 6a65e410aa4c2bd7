"""Test cases in bundles: imported with their trials, which are replayed and judged there."""

import io
from dataclasses import replace

import pytest

from tests.lab.cases.test_edit import DRAFT, answering, saved, tried
from tests.lab.interchange.bundle_bytes import read_members, reseal_members, write_bundle_bytes
from tests.lab.scripted_runs import make_scripted_model
from toolbench.lab.interchange.bundle.read import import_bundle
from toolbench.lab.interchange.bundle.selection import BundleError
from toolbench.lab.interchange.bundled_cases import parse_cases
from toolbench.lab.interchange.row_json import InvalidRowError
from toolbench.lab.models import Case, CaseSet, Model, Provider, Run
from toolbench.lab.replays.check import check_replay
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
        ("slug", "../x", "is not a slug of a case"),
        ("version", 0, "has no version"),
        ("kind", "code", "cannot be read"),
        ("definition", '{"tools": []}', "cannot be read"),
        ("definition", "[" * 100_000, "cannot be read"),
        ("title", None, "has no slug, title, kind or definition"),
    )
    for field, value, reason in invalid_fields:
        with pytest.raises(InvalidRowError, match=reason):
            parse_cases({"cases": [valid_case | {field: value}]})
