import pytest
from django.db import DataError, transaction

from toolbench.lab.models import SamplingProfile
from toolbench.lab.worker import pipeline
from toolbench.lab.worker.pipeline import open_pipeline

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_of_the_statements_sent_together_has_its_own_answer() -> None:
    with transaction.atomic(), open_pipeline():
        first = pipeline.open_cursor().execute("SELECT %s::text", ["a"])
        second = pipeline.open_cursor().execute("SELECT %s::bytea", [b"\x00"])
    assert (first.fetchall(), second.fetchall()) == ([("a",)], [(b"\x00",)])


def delete_and_stumble() -> None:
    with transaction.atomic(), open_pipeline():
        pipeline.open_cursor().execute("DELETE FROM lab_samplingprofile")
        pipeline.open_cursor().execute("SELECT %s::int", ["no number"])


def test_what_one_of_them_is_refused_for_is_djangos_error_and_undoes_all() -> None:
    SamplingProfile.objects.create(name="kept")
    with pytest.raises(DataError):
        delete_and_stumble()
    assert SamplingProfile.objects.get().name == "kept"
