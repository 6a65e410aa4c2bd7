"""`manage.py sweep`: repair lost work once."""

from django.core.management.base import BaseCommand

from toolbench.lab.maintenance import sweep


class Command(BaseCommand):
    """Command that runs one sweep."""

    help = "Run one sweep: requeue trials of lost workers, end runs, recompute stale cells, notify workers and more."

    def handle(self, **options: object) -> None:
        """Run the sweep and print its counts."""
        result = sweep()
        self.stdout.write(
            f"{result.expired} lost trials requeued or ended, {result.ended} queued trials ended, "
            f"{result.paused} runs paused, {result.finished} runs finished, {result.recomputed} cells recomputed, "
            f"workers notified for {len(result.notified)} providers"
        )
