"""`manage.py catalogue`: load the built-in data. It can be run at any time."""

from django.core.management.base import BaseCommand

from toolbench.lab.builtin_data import load_builtin_data


class Command(BaseCommand):
    """Command that loads the built-in data."""

    help = (
        "Load the built-in models, presets and profiles, the simulated models and the published matrix. Your settings "
        "are kept."
    )

    def handle(self, **options: object) -> None:
        """Load the data, without changing settings that a person entered, and print the counts."""
        loaded = load_builtin_data()
        self.stdout.write(
            f"{loaded.presets} presets, {loaded.profiles} profiles, {loaded.models} models, "
            f"{loaded.simulated_models} simulated models, {loaded.published_rows} published rows"
        )
