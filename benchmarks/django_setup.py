"""Sets Django up when imported, before anything that needs its models."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbench.settings")
django.setup()
