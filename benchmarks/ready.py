"""Sets Django up when imported, before anything that needs its models."""

import django

django.setup()
