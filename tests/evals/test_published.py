"""Tests that the published figures add up, as published and by Toolbench's rules."""

from collections.abc import Iterable

from toolbench.evals.published import PassCount, load_snapshots

SNAPSHOT = load_snapshots()[0]


def sum_counts(counts: Iterable[PassCount]) -> PassCount:
    pairs = list(counts)
    return sum(ok for ok, _ in pairs), sum(runs for _, runs in pairs)


def test_snapshot_cells_add_up_to_the_published_totals() -> None:
    tool = sum_counts(cell.tool for cell in SNAPSHOT.cells)
    control = sum_counts(cell.control for cell in SNAPSHOT.cells)
    assert (tool, control) == (SNAPSHOT.tool, SNAPSHOT.control) == ((1002, 1160), (196, 290))
    assert sum_counts((tool, control)) == SNAPSHOT.overall == (1198, 1450)


def test_snapshot_scenarios_add_up_to_the_published_totals() -> None:
    assert SNAPSHOT.scenarios == {
        "happy_path": (274, 290),
        "missing_workspace_id": (272, 290),
        "type_error_recovery": (253, 290),
        "long_arguments_guard": (203, 290),
        "chat_only": (196, 290),
    }
    assert sum_counts(SNAPSHOT.scenarios.values()) == SNAPSHOT.overall
    assert SNAPSHOT.scenarios["chat_only"] == SNAPSHOT.control


def test_snapshot_model_without_tools_is_not_applicable() -> None:
    assert sum_counts(cell.tool for cell in SNAPSHOT.cells if not cell.not_applicable) == (1002, 1120)
    assert [cell.model for cell in SNAPSHOT.cells if cell.not_applicable] == ["minimax/minimax-m2-her"]


def test_snapshot_recommendations_are_of_published_cells() -> None:
    cells = {(cell.model, cell.profile) for cell in SNAPSHOT.cells}
    assert len(SNAPSHOT.recommendations) == 17
    assert all((recommendation.model, recommendation.profile) in cells for recommendation in SNAPSHOT.recommendations)


def test_snapshot_failures_do_not_exceed_the_failed_trials() -> None:
    for cell in SNAPSHOT.cells:
        failed = cell.tool[1] - cell.tool[0]
        assert all(failure.count <= failed for failure in cell.failures)
