"""Parameters of comparisons in the OpenAPI document."""

from toolbench.api.documents.comparisons import build_compare_parameters
from toolbench.lab.results.compare.query import INSTANCE_KIND_LABELS, SUCCESS_METRICS


def test_compare_parameters_have_descriptions_with_their_values() -> None:
    descriptions = {str(row["name"]): str(row["description"]) for row in build_compare_parameters()}
    for name, values in {"metric": SUCCESS_METRICS, "kind": INSTANCE_KIND_LABELS}.items():
        assert all(f"`{value}`" in descriptions[name] for value in values)
    assert descriptions["run"] == "ids of runs, separated by commas."
    assert descriptions["b_run"] == "ids of runs, separated by commas; of side b."
    assert all(descriptions.values())
