import pytest

from tests.lab.schedules.scheduled import make_schedule
from toolbench.lab.credentials.keys import decrypt
from toolbench.lab.schedules.conditions import describe_rule
from toolbench.lab.schedules.rules import RuleError, RuleSettings, create_rule

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.test:8443/services/T0/s3cr3t?x=1"


def test_create_rule_encrypts_the_webhook_and_stores_its_host() -> None:
    rule = create_rule(make_schedule(), RuleSettings("below_target", 80, URL, ""))
    assert (rule.webhook_host, rule.threshold) == ("hooks.example.test:8443", 80)
    assert decrypt(rule.webhook_encrypted or b"") == URL
    assert b"s3cr3t" not in bytes(rule.webhook_encrypted or b"")


def test_large_thresholds_are_written_without_exponent() -> None:
    with pytest.raises(RuleError, match="at most 1,000,000"):
        create_rule(None, RuleSettings("spend", 1_000_001, "", ""))
    assert describe_rule(create_rule(None, RuleSettings("spend", 1_000_000, "", ""))).endswith(" 1,000,000 dollars")
    assert describe_rule(create_rule(None, RuleSettings("spend", 0.5, "", ""))).endswith(" 0.5 dollars")


def test_create_rule_ignores_the_threshold_of_a_kind_without_one() -> None:
    assert create_rule(make_schedule(), RuleSettings("drift", 80, "", "")).threshold is None


@pytest.mark.parametrize(
    ("rule_settings", "field"),
    [
        (RuleSettings("unknown", 1, "", ""), "kind"),
        (RuleSettings("slow", None, "", ""), "threshold"),
        (RuleSettings("slow", 0, "", ""), "threshold"),
        (RuleSettings("slow", float("nan"), "", ""), "threshold"),
        (RuleSettings("below_target", 101, "", ""), "threshold"),
        (RuleSettings("drift", None, "ftp://example.test", ""), "webhook"),
        (RuleSettings("drift", None, "https://", ""), "webhook"),
        (RuleSettings("drift", None, "https://a:99999999/", ""), "webhook"),
        (RuleSettings("drift", None, "https://a b/", ""), "webhook"),
        (RuleSettings("drift", None, "", "a,b@example.test"), "email"),
        (RuleSettings("drift", None, "", f"{'a' * 250}@example.test"), "email"),
    ],
)
def test_create_rule_refuses_an_invalid_rule(rule_settings: RuleSettings, field: str) -> None:
    with pytest.raises(RuleError) as raised:
        create_rule(make_schedule(), rule_settings)
    assert list(raised.value.errors) == [field]


def test_create_rule_for_all_runs_refuses_kinds_with_a_baseline() -> None:
    with pytest.raises(RuleError):
        create_rule(None, RuleSettings("drift", None, "", ""))
    assert create_rule(None, RuleSettings("run_ended", None, "", "")).schedule is None
