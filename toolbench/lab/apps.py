"""The Django app with all models of Toolbench."""

from django.apps import AppConfig
from django.db.models.signals import pre_migrate


class LabConfig(AppConfig):
    """Configuration of the app `toolbench.lab`."""

    name = "toolbench.lab"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the Celery app, install the masking of logs, and warn before migrations that lock large tables.

        If the Celery app were not loaded, the web process would publish to Celery's default broker.
        """
        import toolbench.celery  # noqa: F401
        from toolbench.lab.credentials.log_masking import install_log_masking
        from toolbench.lab.operations.migration_locks import print_long_locks

        install_log_masking()
        pre_migrate.connect(print_long_locks, sender=self)
