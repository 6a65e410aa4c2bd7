"""The one app with tables."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    name = "toolbench.lab"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Loads the Celery app: without it the web process would publish to Celery's default broker. From here on no
        log holds a key."""
        import toolbench.celery  # noqa: F401
        from toolbench.lab.credentials.log_masking import install_log_masking

        install_log_masking()
