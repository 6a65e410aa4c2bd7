"""Retention rules: parsing of entered texts, and saving."""

import pytest

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.models import RetentionRule
from toolbench.lab.operations.retention_policy import (
    Kind,
    RetentionPolicy,
    describe_rule,
    load_retention_policy,
    parse_retention_policy,
    save_retention_policy,
)


def test_parse_retention_policy_reads_days_and_omits_empty_kinds() -> None:
    policy = parse_retention_policy({"passed": " 30 ", "failed": "", "csrfmiddlewaretoken": "x"})
    assert policy == RetentionPolicy({Kind.PASSED: 30})
    assert (policy.kinds, policy.days) == (["passed"], [30])


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "soon", "99999", "٣", "1e3"])
def test_parse_retention_policy_invalid_text_names_field(text: str) -> None:
    with pytest.raises(InvalidFieldsError) as refused:
        parse_retention_policy({"failed": text, "passed": "3"})
    assert list(refused.value.errors) == ["failed"]


def test_describe_rule_has_singular_and_plural() -> None:
    assert describe_rule(Kind.PASSED, 1) == "Passed trials after 1 day"
    assert describe_rule(Kind.DELETED, 7) == "Trials of deleted runs after 7 days"


@pytest.mark.django_db
def test_save_retention_policy_replaces_all_rules() -> None:
    save_retention_policy(RetentionPolicy({Kind.PASSED: 30, Kind.FAILED: 90}))
    save_retention_policy(RetentionPolicy({Kind.PASSED: 14}))
    assert load_retention_policy() == RetentionPolicy({Kind.PASSED: 14})
    assert RetentionRule.objects.count() == 1


@pytest.mark.django_db
def test_describe_rule_fits_column_of_trial() -> None:
    assert max(len(describe_rule(kind, 36_500)) for kind in Kind) <= 80
