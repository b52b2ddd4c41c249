"""Accepts or refuses the proof of a bound, without any solver.

===============  =================  ============================================
kind             objective          says
===============  =================  ============================================
``cycle``        period             a loop's work over its delay
``resource``     period, makespan   work over devices; what must share a device
``assignment``   period, makespan   weighted mean load of unequal devices
``packing``      period, makespan   items too heavy for the devices
``path``         period (flush),    a path without delay
                 makespan
``window``       period (flush),    work between what precedes and follows it
                 makespan
``loops``        staleness          the delays that loops need
``confined``     communication      consumers barred from the producer's device
``connected``    communication      ops joined by tensors, too much for a device
``working_set``  peak memory        what one op keeps while it runs
``average``      peak memory        what all devices keep, shared evenly
``trivial``      any                the period is positive, the rest not negative
``exhaustion``   any                a solver's word: cannot be checked here
``pipeline``     period, makespan   a rule of synchronous pipelines
===============  =================  ============================================

A proof of any other kind is refused; one that lacks its certificate is not checked.

A load bounds the makespan, too: the ops of one iteration on one device run in turn.
The fields of each certificate stand at its function, in `walks`, `windows`,
`loads`, `places` and `pipelines`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lpsched.core.graph import Graph
from lpsched.core.result import Proof
from lpsched.verify.evidence import (
    Certificate,
    NotCheckableError,
    RefusedError,
    is_whole,
)
from lpsched.verify.loads import assignment_bound, packing_bound, resource_bound
from lpsched.verify.pipelines import pipeline_bound
from lpsched.verify.places import (
    average_bound,
    confined_bound,
    connected_bound,
    working_set_bound,
)
from lpsched.verify.walks import cycle_bound, loops_bound, path_bound
from lpsched.verify.windows import window_bound

__all__ = ["CertificateVerdict", "Verdict", "check_proof"]


class Verdict(StrEnum):
    """What became of a proof."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_CHECKABLE = "not_checkable"  # a solver's word, or too much to check


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateVerdict:
    """The verdict on a proof, with reasons unless it is accepted."""

    status: Verdict
    reasons: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the bound is proved for everyone."""
        return self.status is Verdict.ACCEPTED


#: What each kind of certificate proves of an objective: a bound, None if no schedule
#: exists at all.
_BOUNDS: Mapping[tuple[str, str], Callable[[Graph, Certificate], int | None]] = {
    ("cycle", "period"): cycle_bound,
    ("resource", "period"): resource_bound,
    ("assignment", "period"): assignment_bound,
    ("packing", "period"): packing_bound,
    ("resource", "makespan"): resource_bound,
    ("assignment", "makespan"): assignment_bound,
    ("packing", "makespan"): packing_bound,
    ("path", "period"): lambda graph, c: path_bound(graph, c, closed=True),
    ("path", "makespan"): lambda graph, c: path_bound(graph, c, closed=False),
    ("window", "period"): lambda graph, c: window_bound(graph, c, closed=True),
    ("window", "makespan"): lambda graph, c: window_bound(graph, c, closed=False),
    ("pipeline", "period"): lambda graph, c: pipeline_bound(graph, c, closed=True),
    ("pipeline", "makespan"): lambda graph, c: pipeline_bound(graph, c, closed=False),
    ("loops", "staleness"): loops_bound,
    ("confined", "communication"): confined_bound,
    ("connected", "communication"): connected_bound,
    ("working_set", "peak_memory"): working_set_bound,
    ("average", "peak_memory"): average_bound,
}
_KINDS = {kind for kind, _ in _BOUNDS}

#: Kinds that lpsched writes and that are not checked here.
_UNCHECKED = {"exhaustion"}


def check_proof(
    graph: Graph, objective: str, bound: int, proof: Proof, *, period: int | None = None
) -> CertificateVerdict:
    """Check that `proof` proves ``objective >= bound`` for the schedules of `graph`.

    Recomputes everything from the graph in exact integers; nothing that the
    certificate asserts is believed.

    Parameters
    ----------
    period : int, optional
        A certificate may state the longest period of the schedules it speaks of (its
        field ``period``); it is refused if that is less than this one.
    """
    try:
        _prove(graph, objective, bound, proof, period)
    except RefusedError as refused:
        return CertificateVerdict(status=Verdict.REFUSED, reasons=(str(refused),))
    except NotCheckableError as unable:
        return CertificateVerdict(status=Verdict.NOT_CHECKABLE, reasons=(str(unable),))
    return CertificateVerdict(status=Verdict.ACCEPTED)


def _prove(
    graph: Graph, objective: str, bound: int, proof: Proof, period: int | None
) -> None:
    """Return if the bound is proved; raise the reason otherwise."""
    if proof.value is not None and proof.value != bound:
        raise RefusedError(f"the proof's value is {proof.value}, the bound {bound}")
    proved = _proved(graph, objective, proof, period)
    if proved is not None and proved < bound:
        raise RefusedError(f"the proof shows {objective} >= {proved}, not more")


def _proved(
    graph: Graph, objective: str, proof: Proof, period: int | None
) -> int | None:
    """Return the greatest bound that a proof shows; None if no schedule exists."""
    if proof.kind == "trivial":
        return 1 if objective == "period" else 0
    if proof.kind in _UNCHECKED:
        raise NotCheckableError(f"proofs of kind {proof.kind!r} are not checked")
    if proof.kind not in _KINDS:
        raise RefusedError(f"there is no kind of proof {proof.kind!r}")
    if proof.certificate is None:
        raise NotCheckableError(f"the proof ({proof.kind!r}) carries no certificate")
    check = _BOUNDS.get((proof.kind, objective))
    if check is None:
        raise RefusedError(f"a {proof.kind!r} certificate says nothing of {objective}")
    longest = proof.certificate.get("period")
    if period is not None and is_whole(longest) and longest < period:
        raise RefusedError(f"the certificate only speaks of periods up to {longest}")
    return check(graph, proof.certificate)
