"""`manage.py sweep`: repair lost work once."""

from django.core.management.base import BaseCommand

from toolbench.lab.maintenance import sweep


class Command(BaseCommand):
    """Command that runs one sweep."""

    help = "Requeue trials of lost workers, end runs, recompute stale cells and notify the workers."

    def handle(self, **options: object) -> None:
        """Run the sweep and print its counts."""
        result = sweep()
        self.stdout.write(
            f"{result.expired} trials requeued, {result.ended} ended before they began, {result.paused} runs paused, "
            f"{result.finished} finished, {result.recomputed} cells recomputed, workers notified for "
            f"{len(result.notified)} providers"
        )
