"""The methods of requesting calls, by their names in the policy."""

from toolbench.engine.constraints.compiling import ConstraintOptions
from toolbench.engine.constraints.schema_support import CONSTRAINTS, TOOL_CONSTRAINTS
from toolbench.engine.errors import PlanError
from toolbench.engine.methods.constrained import ConstrainedMethod
from toolbench.engine.methods.interface import CallMethod
from toolbench.engine.methods.native import NativeMethod
from toolbench.engine.methods.native_strict import NativeStrictMethod
from toolbench.engine.methods.template import TemplateMethod
from toolbench.engine.methods.text_json import TextJsonMethod
from toolbench.engine.policy.settings import Policy


def build_method(policy: Policy, options: ConstraintOptions | None = None) -> CallMethod:
    """Return the method that the policy names.

    Args:
        policy: the settings of the run.
        options: options of a constraint, used only by the method `constrained`; None for the defaults.

    Raises:
        PlanError: there is no such method, constraint or text format, or the turn tokens of the text format, which the
            method `template` needs, are not known.
    """
    method, constraint = policy.method, policy.constraint
    if method == "native":
        return NativeMethod(sends_instruction=policy.tool_use_prompt)
    if method == "text_json":
        return TextJsonMethod(policy.argument_repairs)
    if method == "template":
        return TemplateMethod(policy.text_format, guess_untyped=policy.guess_untyped)
    if method == "constrained" and constraint in TOOL_CONSTRAINTS:
        return NativeStrictMethod(constraint, options or ConstraintOptions())
    if method == "constrained" and constraint in CONSTRAINTS:
        return ConstrainedMethod(constraint, options or ConstraintOptions())
    raise PlanError(f"There is no method {method!r} with the constraint {constraint!r}.")
