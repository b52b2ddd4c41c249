"""Accepts or refuses the proof of a bound, without any solver.

==============  ==========  =============================================
kind            objective   says
==============  ==========  =============================================
``cycle``       period      a loop's work over its delay
``resource``    period      work over devices; what must share a device
``assignment``  period      weighted mean load of unequal devices
``packing``     period      items too heavy for the devices
``path``        period      with flush: a path without delay
``path``        makespan    a path without delay
``exhaustion``  any         a solver's word: cannot be checked here
==============  ==========  =============================================

The fields of each certificate stand at its function, in `walks` and `loads`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from lpsched.core.graph import Graph
from lpsched.core.result import Proof
from lpsched.verify.evidence import Certificate, NotCheckableError, RefusedError
from lpsched.verify.loads import assignment_bound, packing_bound, resource_bound
from lpsched.verify.walks import cycle_bound, path_bound

__all__ = ["CertificateVerdict", "Verdict", "check_proof"]


class Verdict(StrEnum):
    """What became of a proof."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    NOT_CHECKABLE = "not_checkable"  # no certificate, or one only a solver can check


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
    ("path", "period"): lambda graph, c: path_bound(graph, c, closed=True),
    ("path", "makespan"): lambda graph, c: path_bound(graph, c, closed=False),
}
_KINDS = {kind for kind, _ in _BOUNDS}


def check_proof(
    graph: Graph, objective: str, bound: int, proof: Proof
) -> CertificateVerdict:
    """Check that `proof` proves ``objective >= bound`` for every schedule of `graph`.

    Recomputes everything from the graph in exact integers; nothing that the
    certificate asserts is believed.
    """
    try:
        _prove(graph, objective, bound, proof)
    except RefusedError as refused:
        return CertificateVerdict(status=Verdict.REFUSED, reasons=(str(refused),))
    except NotCheckableError as unable:
        return CertificateVerdict(status=Verdict.NOT_CHECKABLE, reasons=(str(unable),))
    return CertificateVerdict(status=Verdict.ACCEPTED)


def _prove(graph: Graph, objective: str, bound: int, proof: Proof) -> None:
    """Return if the bound is proved; raise the reason otherwise."""
    if proof.value is not None and proof.value != bound:
        raise RefusedError(f"the proof's value is {proof.value}, the bound {bound}")
    if proof.kind not in _KINDS:
        raise NotCheckableError(f"{proof.kind!r} cannot be checked without a solver")
    if proof.certificate is None:
        raise NotCheckableError(f"the proof ({proof.kind!r}) carries no certificate")
    check = _BOUNDS.get((proof.kind, objective))
    if check is None:
        raise RefusedError(f"a {proof.kind!r} certificate says nothing of {objective}")
    proved = check(graph, proof.certificate)
    if proved is not None and proved < bound:
        raise RefusedError(f"the certificate proves {objective} >= {proved}")
