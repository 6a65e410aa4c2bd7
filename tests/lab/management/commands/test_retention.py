"""`manage.py retention`."""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from tests.factories import make_cell, make_config, make_run, make_step, make_trial
from toolbench.lab.models import AuditEntry, RetentionRule, Trial

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def old_trial() -> None:
    trial = make_trial(make_cell(make_config(make_run())), finished_at=timezone.now() - timedelta(days=40))
    make_step(trial)


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    call_command("retention", *arguments)
    return capsys.readouterr().out


def count_removed() -> int:
    return Trial.objects.exclude(bodies_removed_at=None).count()


def test_retention_without_rules_removes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert "No rule is saved" in run_command(capsys)
    assert count_removed() == 0


def test_retention_dry_run_prints_each_rule_and_removes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    printed = run_command(capsys, "--dry-run", "--rule", "passed=30", "--rule", "failed=30")
    assert "Passed trials after 30 days: 1 trial, about 9 bytes\n" in printed
    assert "Failed trials after 30 days: 0 trials, about 0 bytes\nNothing was removed." in printed
    assert count_removed() == 0


def test_retention_removes_by_saved_rules_and_writes_an_audit_entry(capsys: pytest.CaptureFixture[str]) -> None:
    RetentionRule.objects.create(kind="passed", days=30)
    assert run_command(capsys, "--dry-run").endswith("Nothing was removed.\n")
    assert run_command(capsys) == "Bodies of 1 trial removed.\n"
    assert count_removed() == 1
    assert AuditEntry.objects.get().subject == "bodies of 1 trial, by the rules of retention"


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [("old=3", "is not understood"), ("passed=soon", "Enter whole days"), ("passed", "needs a number of days")],
)
def test_retention_explains_an_invalid_rule(rule: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("retention", "--dry-run", "--rule", rule)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (("passed", "failed=3"), "--rule passed needs a number of days"),
        (("failed=3", "passed= "), "--rule passed needs a number of days"),
        (("failed=3", "failed=30"), "--rule failed=30: there is another rule for failed"),
    ],
)
def test_retention_ignores_no_rule(rules: tuple[str, str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        call_command("retention", "--dry-run", *(f"--rule={rule}" for rule in rules))


def test_retention_refuses_unsaved_rules_without_dry_run() -> None:
    with pytest.raises(CommandError, match="for --dry-run only"):
        call_command("retention", "--rule", "passed=1")
    assert count_removed() == 0
