"""Steps that bound the period, with certificates where there are any."""

from __future__ import annotations

from lpsched.analysis.certified import ceil_div
from lpsched.analysis.load_bounds import (
    assignment_bound,
    group_bound,
    resource_bounds,
)
from lpsched.analysis.packing_bound import packing_bounds
from lpsched.core.result import Proof
from lpsched.formulations.balance.state import State

__all__ = ["raise_by_assignment", "raise_by_packing", "raise_by_work", "raise_to_unit"]

#: Kinds of items times devices beyond which the linear program takes too long.
_MAX_CELLS = 200_000


def raise_by_work(state: State) -> None:
    """Share the work evenly; no load is below the longest item either."""
    for bound in resource_bounds(state.sites):
        state.raise_bound(bound.proof)
    longest = group_bound(state.sites)
    if longest is not None:
        state.raise_bound(longest.proof)


def raise_by_assignment(state: State) -> None:
    """Share the work among unequal devices, and keep the weights that prove it."""
    problem = state.problem
    if problem.is_uniform or len(problem.kinds) * len(problem.devices) > _MAX_CELLS:
        return
    bound = assignment_bound(state.sites)
    if bound is not None and bound.proof.certificate is not None:
        weights = bound.proof.certificate["weights"]
        state.weights = tuple(weights.get(device, 0) for device in problem.devices)
        state.raise_bound(bound.proof)


def raise_by_packing(state: State) -> None:
    """Weigh the items so that they are too heavy for the devices."""
    if state.is_on("packing"):
        for bound in packing_bounds(state.sites, least=state.bound):
            state.raise_bound(bound.proof)


def raise_to_unit(state: State) -> None:
    r"""Round a bound up to what loads can be: multiples of the durations' divisor g.

    On equal devices items of weight t / g show it: within :math:`T' = k g - 1` no set
    weighs more than k - 1, too little for all if :math:`k = \lceil \sum t / (g P)
    \rceil`. Otherwise it needs to be believed.
    """
    problem = state.problem
    if not problem.is_uniform:
        least = ceil_div(state.proof.value or 1, problem.unit)
        state.raise_by_exhaustion(least, loads_are_multiples_of=problem.unit)
        return
    ticks = [profile[0] or 0 for profile in problem.profiles]
    k = ceil_div(sum(ticks), len(problem.devices) or 1)
    if k > 0:
        certificate = {
            "refuted": k * problem.unit - 1,
            "items": [list(ops) for ops in problem.items],
            "devices": list(problem.devices),
            "weights": {str(t * problem.unit): t for t in sorted(set(ticks))},
            "capacity": k - 1,
        }
        value = k * problem.unit
        state.raise_bound(Proof(kind="packing", value=value, certificate=certificate))
