"""`manage.py catalogue`: load the built-in data; it can be run at any time."""

from django.core.management.base import BaseCommand

from toolbench.lab.builtin_data import load_builtin_data


class Command(BaseCommand):
    """Command that loads the built-in data."""

    help = "Load presets, profiles, models, simulated personas and the published matrix. What a person has set stays."

    def handle(self, **options: object) -> None:
        """Load the data and print the counts. Settings of a person stay."""
        loaded = load_builtin_data()
        self.stdout.write(
            f"{loaded.presets} presets, {loaded.profiles} profiles, {loaded.models} models, "
            f"{loaded.personas} personas, {loaded.published_cells} published cells"
        )
