"""Set-up of Django at import. Import it before modules that need Django's models."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")
django.setup()
