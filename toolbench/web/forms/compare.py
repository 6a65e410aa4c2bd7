"""The fields by which the sides of a comparison are chosen: plain inputs whose names are those of the address."""

from dataclasses import dataclass

from toolbench.lab.comparisons.compare_choices import CompareChoices
from toolbench.lab.comparisons.compare_query import AXES, NONE, STREAMED, WHOLE, CompareQuery

SIDES = (("", "Both"), ("a_", "First side"), ("b_", "Second side"))
NOT_TYPED = {"published"}
USUAL = {"day": "date"}


@dataclass(frozen=True, slots=True)
class AxisField:
    """An input, or a choice where `options` (value, label) are known."""

    name: str
    label: str
    value: str
    kind: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SideFields:
    title: str
    fields: tuple[AxisField, ...]


def side_fields(query: CompareQuery, choices: CompareChoices) -> tuple[SideFields, ...]:
    given = {"": query.both, "a_": query.a, "b_": query.b}
    options = _options(choices)
    return tuple(
        SideFields(
            title,
            tuple(
                AxisField(prefix + axis, label, value, USUAL.get(axis, ""), _with(options.get(axis, ()), value))
                for axis, label in AXES.items()
                for value in [given[prefix].get(axis, "")]
                if axis not in NOT_TYPED
            ),
        )
        for prefix, title in SIDES
    )


def _options(choices: CompareChoices) -> dict[str, tuple[tuple[str, str], ...]]:
    offered = {axis: tuple((value, value) for value in values) for axis, values in choices.values.items()}
    runs = tuple((str(run.pk), f"{run.pk} · {run}") for run in choices.runs)
    return offered | {"run": runs, "stream": ((WHOLE, "whole"), (STREAMED, "streamed")), "examples": ((NONE, "none"),)}


def _with(options: tuple[tuple[str, str], ...], value: str) -> tuple[tuple[str, str], ...]:
    """The address may hold what is offered no more: it stays chosen."""
    return options if not options or not value or value in dict(options) else (*options, (value, value))
