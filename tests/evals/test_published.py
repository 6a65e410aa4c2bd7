"""Tests that the published figures add up, as published and by Toolbench's rules."""

from collections.abc import Iterable

from toolbench.evals.published import PassCount, load_snapshots

SNAPSHOT = load_snapshots()[0]


def total(counts: Iterable[PassCount]) -> PassCount:
    listed = list(counts)
    return sum(ok for ok, _ in listed), sum(runs for _, runs in listed)


def test_the_cells_add_up_to_the_published_totals() -> None:
    tool = total(cell.tool for cell in SNAPSHOT.cells)
    control = total(cell.control for cell in SNAPSHOT.cells)
    assert (tool, control) == (SNAPSHOT.tool, SNAPSHOT.control) == ((1002, 1160), (196, 290))
    assert total((tool, control)) == SNAPSHOT.overall == (1198, 1450)


def test_the_scenarios_add_up_to_the_published_totals() -> None:
    assert SNAPSHOT.scenarios == {
        "happy_path": (274, 290),
        "missing_workspace_id": (272, 290),
        "type_error_recovery": (253, 290),
        "long_arguments_guard": (203, 290),
        "chat_only": (196, 290),
    }
    assert total(SNAPSHOT.scenarios.values()) == SNAPSHOT.overall
    assert SNAPSHOT.scenarios["chat_only"] == SNAPSHOT.control


def test_under_our_rules_the_model_without_tools_is_left_out() -> None:
    assert total(cell.tool for cell in SNAPSHOT.cells if not cell.not_applicable) == (1002, 1120)
    assert [cell.model for cell in SNAPSHOT.cells if cell.not_applicable] == ["minimax/minimax-m2-her"]


def test_every_recommendation_is_of_a_published_cell() -> None:
    cells = {(cell.model, cell.profile) for cell in SNAPSHOT.cells}
    assert len(SNAPSHOT.recommendations) == 17
    assert all((recommendation.model, recommendation.profile) in cells for recommendation in SNAPSHOT.recommendations)


def test_published_failures_never_exceed_what_failed() -> None:
    for cell in SNAPSHOT.cells:
        failed = cell.tool[1] - cell.tool[0]
        assert all(failure.count <= failed for failure in cell.failures)
