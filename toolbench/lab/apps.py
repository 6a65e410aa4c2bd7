"""The Django app that holds all tables."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    """Name, key type and start-up of the lab app."""

    name = "toolbench.lab"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Load the Celery app and install the masking of logs.

        If the Celery app were not loaded, the web process would publish to Celery's default broker.
        """
        import toolbench.celery  # noqa: F401
        from toolbench.lab.credentials.log_masking import install_log_masking

        install_log_masking()
