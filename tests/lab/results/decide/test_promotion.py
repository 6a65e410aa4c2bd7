"""Configuration that a promotion gives an alias."""

import pytest
from django.utils import timezone

from tests.factories import make_config, make_run
from toolbench.lab.models import DecisionRecord, Run, RunConfig
from toolbench.lab.results.decide.page import find_promotable
from toolbench.lab.results.decide.promotion import get_promotion_source

pytestmark = pytest.mark.django_db


def find_source_config(record: DecisionRecord) -> RunConfig | None:
    source = get_promotion_source(None, record.pk)
    return source.config if source else None


def test_promotion_source_of_a_deleted_confirmation_is_the_evidence() -> None:
    measured, confirmed = make_config(make_run()), make_config(make_run(purpose="confirm"))
    evidence = [{"key": "a", "config_id": measured.pk, "settings": measured.policy_hash}]
    record = DecisionRecord.objects.create(
        title="a", verdict="alone", sentence="Only a qualifies.", leader="a", evidence=evidence,
        confirmed={"run_id": confirmed.run_id},
    )  # fmt: skip
    assert find_source_config(record) == confirmed
    Run.objects.filter(pk=confirmed.run_id).update(deleted_at=timezone.now())
    assert find_source_config(record) == measured


def test_find_promotable_leaves_out_configurations_without_a_model() -> None:
    connected, deleted = make_config(make_run()), make_config(make_run())
    RunConfig.objects.filter(pk=deleted.pk).update(model=None)
    assert find_promotable([connected.pk, deleted.pk]) == {connected.pk}
