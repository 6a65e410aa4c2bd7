"""Form fields that choose the sides of a comparison. Each has the name of its URL parameter.

An axis is a property by which the trials of a side are chosen, such as the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from toolbench.lab.metrics.result_filter import CHOICE_COLUMNS, DATE_NAMES
from toolbench.lab.planning.run_request import NO_EXAMPLES
from toolbench.lab.results.compare.choices import CompareChoices
from toolbench.lab.results.compare.query import AXES, SIDE_LETTERS, CompareQuery
from toolbench.lab.results.trial_list.filter import STREAMED, WHOLE

CHIP_NAMES = frozenset({*CHOICE_COLUMNS, *DATE_NAMES, "upto"})  # parameters that the chips send
HIDDEN_AXES = {"published"}  # axes of a comparison that have no input
# Axes whose inputs are not collapsed.
MAIN_AXES = {"run", "provider", "model", "strategy", "method"}
INPUT_TYPES = {"day": "date"}  # by axis; all other inputs are for text


@dataclass(frozen=True, slots=True)
class AxisOption:
    """Option of a select element.

    Attributes:
        simulated: whether the option is a simulated run.
    """

    value: str
    label: str
    simulated: bool = False


AxisOptions = Mapping[str, tuple[AxisOption, ...]]


@dataclass(frozen=True, slots=True)
class AxisField:
    """Input for one axis, or a select element if it has options.

    Attributes:
        kind: type of the input; "" for text.
        options: the options of a select element; () for an input.
    """

    name: str
    label: str
    value: str
    kind: str
    options: tuple[AxisOption, ...]


@dataclass(frozen=True, slots=True)
class SideFields:
    """Inputs of one side, or of all sides together.

    Attributes:
        fields: the inputs that most comparisons need.
        more: the other inputs, collapsed unless one of them has a value.
    """

    title: str
    fields: tuple[AxisField, ...]
    more: tuple[AxisField, ...]

    @property
    def is_open(self) -> bool:
        """Return whether the inputs of `more` are expanded."""
        return any(field.value for field in self.more)


def build_side_fields(query: CompareQuery, choices: CompareChoices) -> tuple[SideFields, ...]:
    """Return the inputs for all sides together, then those of each side.

    The named sides are followed by an empty one if SIDE_LETTERS has a letter for it. There are at least two sides.
    """
    options = _list_options(choices)
    sides = [side for side in query.side_values if side] if query.has_named_sides else []
    sides += [{}] * (max(2, len(sides) + 1) - len(sides))
    lettered_sides = zip(SIDE_LETTERS, sides, strict=False)
    return (
        _build_side("All sides", "", query.both, options),
        *(
            _build_side(f"Side {number}" if number > 1 else "Baseline", f"{letter}_", side, options)
            for number, (letter, side) in enumerate(lettered_sides, start=1)
        ),
    )


def list_carried_fields(query: CompareQuery) -> list[tuple[str, str]]:
    """Return (name, value) of each parameter that the form of chips and runs has as a hidden field."""
    shown = CHIP_NAMES | {"run"} if query.can_choose_runs else CHIP_NAMES
    return [(name, value) for name, value in query.pairs if name not in shown]


def _build_side(title: str, prefix: str, values: Mapping[str, str], options: AxisOptions) -> SideFields:
    fields = {
        axis: _build_field(axis, prefix, values.get(axis, ""), options) for axis in AXES if axis not in HIDDEN_AXES
    }
    main_fields = tuple(field for axis, field in fields.items() if axis in MAIN_AXES)
    return SideFields(title, main_fields, tuple(field for axis, field in fields.items() if axis not in MAIN_AXES))


def _build_field(axis: str, prefix: str, value: str, options: AxisOptions) -> AxisField:
    return AxisField(
        prefix + axis, AXES[axis], value, INPUT_TYPES.get(axis, ""), _add_chosen_option(options.get(axis, ()), value)
    )


def _list_options(choices: CompareChoices) -> AxisOptions:
    options = {axis: tuple(AxisOption(value, value) for value in values) for axis, values in choices.values.items()}
    return options | {
        "run": tuple(AxisOption(str(run.pk), f"{run.pk} · {run}", run.simulated) for run in choices.runs),
        "stream": (AxisOption(WHOLE, "whole"), AxisOption(STREAMED, "streamed")),
        "examples": (AxisOption(NO_EXAMPLES, "none"),),
    }


def _add_chosen_option(options: tuple[AxisOption, ...], value: str) -> tuple[AxisOption, ...]:
    """Add the chosen value to the options of a select element if it is not among them."""
    is_offered = not value or value in {option.value for option in options}
    return options if is_offered or not options else (*options, AxisOption(value, value))
