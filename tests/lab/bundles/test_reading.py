"""A bundle imported elsewhere is the same run, row for row, and stands in no scope but its own."""

import io
import json
import zipfile

import pytest
from django.test import Client

from tests.lab.benches import launched, plays_well, scripted_model, work
from tests.lab.bundles.bundles import bundle_of, rewritten
from toolbench.lab.bundles.opening import Caps, ImportRefused
from toolbench.lab.bundles.reading import import_bundle
from toolbench.lab.models import Cell, Run, RunConfig, Step, StepBody, Trial
from toolbench.providers.scripted import ScriptedProvider


@pytest.mark.django_db(transaction=True)
def test_what_was_exported_imported_and_exported_again_has_the_same_evidence() -> None:
    with ScriptedProvider(plays_well) as scripted:
        model = scripted_model(scripted)
        run = launched(model, scenarios=("happy_path", "long_arguments_guard", "chat_only"), trials=2)
        work(model)
    first, manifest = bundle_of(run)
    imported = import_bundle(io.BytesIO(first), "bundle.zip", owner=None)
    second, again = bundle_of(imported)
    assert manifest.evidence == again.evidence
    names = zipfile.ZipFile(io.BytesIO(first)).namelist()
    same = [name for name in names if name not in ("manifest.json", "index.html")]
    assert {name: manifest.members[name].sha256 for name in same} == {
        name: again.members[name].sha256 for name in same
    }
    assert imported.imported
    assert imported.trial_count == 6
    assert sum(cell.passed for cell in imported.cells.all()) == sum(cell.passed for cell in run.cells.all()) > 0
