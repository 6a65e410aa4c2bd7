"""Query of the latency page."""

from toolbench.lab.results.latency.query import LatencyQuery


def test_latency_query_leaves_out_only_the_default_of_each_parameter() -> None:
    assert LatencyQuery(group="trial").query(page=1) == "group=trial"
    assert LatencyQuery(group="real").query(page=2) == "group=real&page=2"
    assert not LatencyQuery().query()
