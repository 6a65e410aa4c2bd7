"""`manage.py retention`: remove the bodies of old trials by the saved rules, or count what rules would remove."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import pluralize

from toolbench.lab.errors import InvalidFieldsError
from toolbench.lab.operations.body_removal import preview_removal, record_removal, remove_due_bodies
from toolbench.lab.operations.retention_policy import (
    Kind,
    RetentionPolicy,
    load_retention_policy,
    parse_retention_policy,
)
from toolbench.lab.operations.storage_space import format_bytes


class Command(BaseCommand):
    """Command that removes bodies by the retention rules."""

    help = (
        "Remove the bodies of old trials by the rules that are saved at /settings/retention/, as the scheduler does "
        "once a day. Verdicts, versions and figures stay."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Define the arguments."""
        parser.add_argument("--dry-run", action="store_true", help="count what would be removed, and change nothing")
        parser.add_argument(
            "--rule",
            action="append",
            default=[],
            metavar="KIND=DAYS",
            help=f"with --dry-run: a rule instead of the saved ones, repeatable; KIND is {', '.join(Kind.values)}",
        )

    def handle(self, *args: Any, dry_run: bool, rule: list[str], **options: Any) -> None:
        """Remove the bodies and print the number of trials; with `dry_run`, print what each rule would remove.

        Raises:
            CommandError: a rule is wrong, or is given without --dry-run.
        """
        if rule and not dry_run:
            raise CommandError("--rule is for --dry-run only: save rules at /settings/retention/.")
        policy = _parse_rules(rule) if rule else load_retention_policy()
        if not policy.days_by_kind:
            self.stdout.write("No rule is saved, so every body is kept. Save rules at /settings/retention/.")
        elif dry_run:
            self._print_preview(policy)
        else:
            removed = remove_due_bodies(policy).removed
            if removed:
                record_removal(removed)
            self.stdout.write(f"Bodies of {removed} trial{pluralize(removed)} removed.")

    def _print_preview(self, policy: RetentionPolicy) -> None:
        for due_trials in preview_removal(policy):
            count, size = due_trials.trials, format_bytes(due_trials.stored_bytes)
            self.stdout.write(f"{due_trials.rule}: {count} trial{pluralize(count)}, about {size}")
        self.stdout.write("Nothing was removed.")


def _parse_rules(rules: list[str]) -> RetentionPolicy:
    """Parse the rules of the option `--rule`.

    Raises:
        CommandError: a rule has another form than KIND=DAYS, an unknown kind or a wrong number of days, or there are
            several rules of one kind.
    """
    days_by_kind: dict[str, str] = {}
    for rule in rules:
        kind, _, days = rule.partition("=")
        if kind in days_by_kind:
            raise CommandError(f"--rule {rule}: there is another rule for {kind}. Give one rule for each kind.")
        days_by_kind[kind] = days
    if unknown := days_by_kind.keys() - set(Kind.values):
        raise CommandError(f"--rule {min(unknown)} is not understood: write KIND=DAYS, with {', '.join(Kind.values)}.")
    if blank := [kind for kind, days in days_by_kind.items() if not days.strip()]:
        raise CommandError(f"--rule {blank[0]} needs a number of days: KIND=DAYS.")
    try:
        return parse_retention_policy(days_by_kind)
    except InvalidFieldsError as error:
        raise CommandError(str(error)) from error
