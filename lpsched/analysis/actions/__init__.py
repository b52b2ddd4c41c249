"""Tables of PyTorch's actions: whether they can run, and whose ops they are."""

from lpsched.analysis.actions.check import action_faults, check_actions
from lpsched.analysis.actions.deadlock import partner
from lpsched.analysis.actions.steps import Steps, steps_of

__all__ = ["Steps", "action_faults", "check_actions", "partner", "steps_of"]
