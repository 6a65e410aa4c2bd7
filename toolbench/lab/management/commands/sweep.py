"""`manage.py sweep`: repair lost work once."""

from django.core.management.base import BaseCommand

from toolbench.lab.maintenance import sweep


class Command(BaseCommand):
    """Command that runs one sweep."""

    help = "Queue trials of lost workers again, end runs, recompute stale cells, wake the workers."

    def handle(self, **options: object) -> None:
        """Run the sweep and print its counts."""
        swept = sweep()
        self.stdout.write(
            f"{swept.expired} trials queued again, {swept.ended} ended unbegun, {swept.paused} runs paused, "
            f"{swept.finished} finished, {swept.recomputed} cells recomputed, {len(swept.notified)} providers woken"
        )
