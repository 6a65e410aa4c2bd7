"""Addresses of a run that other tests visit: no export is missing."""

import pytest

from tests.factories import make_cell, make_config, make_run, make_trial
from tests.web.run_urls import iter_run_urls


@pytest.mark.django_db
def test_iter_run_urls_yields_every_export_in_every_format() -> None:
    run, other = make_run(), make_run()
    make_trial(make_cell(make_config(run)))
    paths = [url.partition("?")[0] for url in iter_run_urls(run, other)]
    exports = [f"/{page}/export.{kind}" for page in ("matrix", "compare") for kind in ("csv", "json", "md")]
    exports += [f"/runs/{run.pk}/trials.{kind}" for kind in ("csv", "json")]
    assert [path for path in exports if path not in paths] == []
