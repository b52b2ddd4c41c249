"""`lpsched/schedule/1`: the document model and both conversions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from lpsched.core.graph import DelayName, DeviceId, OpId
from lpsched.core.io.faults import branch, validate
from lpsched.core.io.fields import Count, Document, Identifier, Name, Positive, Whole
from lpsched.core.io.graph_document import (
    graph_from_document,
    graph_to_document,
)
from lpsched.core.io.plain import as_tuples
from lpsched.core.result import Proof, Result, Status, Stop
from lpsched.core.schedule import Placed, Schedule
from lpsched.errors import Fault, FormatError

__all__ = [
    "ScheduleDocument",
    "result_to_document",
    "schedule_from_document",
    "schedule_to_document",
]

SCHEDULE_SCHEMA = "lpsched/schedule/1"


#: `Fraction` alone would also read "1e999999999", and take hours over it.
_FRACTION = re.compile(r"-?[0-9]{1,40}(/0*[1-9][0-9]{0,39})?")


def _fraction(text: str) -> str:
    if _FRACTION.fullmatch(text) is None:
        raise ValueError('expected a fraction such as "7/2"')
    return text


FractionText = Annotated[str, AfterValidator(_fraction)]


class ObjectiveDocument(Document):
    """Measured figures of a schedule.

    Attributes
    ----------
    period
        T, in ticks.
    iteration_period
        T / unfolding.
    communication
        Sizes sent in a period, once for each device.
    staleness
        Sum of named delays less one each.
    peak_memory
        Highest peak of a device.
    makespan
        First start to last end of an iteration.
    bubble_ratio
        Idle share.
    """

    period: Positive | None = None
    iteration_period: FractionText | None = None
    communication: Count | None = None
    staleness: Count | None = None
    peak_memory: Count | None = None
    makespan: Count | None = None
    bubble_ratio: FractionText | None = None


class BoundDocument(Document):
    """Proved lower bounds of objectives."""

    period: Count | None = None
    communication: Count | None = None
    staleness: Count | None = None
    peak_memory: Count | None = None
    makespan: Count | None = None


class ProofDocument(Document):
    """Why a bound holds.

    Attributes
    ----------
    kind
        Such as cycle, packing or exhaustion.
    value
        The bound proved.
    certificate
        What `lpsched verify` checks.
    """

    kind: Name
    value: Count | None = None
    certificate: dict[str, Any] | None = None


def _proof_kind(value: Any) -> str:  # noqa: ANN401 - whatever the file holds
    return branch("proof") if isinstance(value, dict) else branch("kind")


ProofField = Annotated[
    Annotated[str, Tag(branch("kind"))]
    | Annotated[ProofDocument, Tag(branch("proof"))],
    Discriminator(_proof_kind),
]


class ResultDocument(Document):
    """How a schedule was found and what is proved of it.

    Attributes
    ----------
    method
        What found it.
    status
        What is known of it.
    objective
        Figures, which are measured again.
    bound
        Lower bounds, each given the values before it.
    proof
        A kind, or a proof.
    seconds
        Time taken.
    seed
        Of the solver.
    workers
        Its threads.
    version
        Of lpsched.
    stop
        Why the search ended.
    rounding
        What scaling real costs did.
    stats
        Anything else.
    """

    method: Name
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    objective: ObjectiveDocument = ObjectiveDocument()
    bound: BoundDocument = BoundDocument()
    proof: dict[str, ProofField] = Field(default_factory=dict)
    seconds: Annotated[float, Field(ge=0, strict=False)] | None = None
    seed: Whole | None = None
    workers: Count | None = None
    version: str | None = None
    stop: Literal["proved", "time_limit", "interrupted", "method"] | None = None
    rounding: dict[str, Any] | None = None
    stats: dict[str, Any] | None = None


class PlacedDocument(Document):
    """Where and when iteration 0 of an op runs.

    Attributes
    ----------
    device
        Where; none for an op that needs none.
    start
        Of iteration 0, in ticks; may be negative.
    """

    device: Identifier | None = None
    start: Whole


class ScheduleDocument(Document):
    """An answer: a device and a start for every op of a graph.

    Attributes
    ----------
    graph
        The graph's name.
    graph_digest
        SHA-256 of the graph's JSON.
    period
        T, in ticks.
    delays
        The value of every named delay.
    ops
        A place for every op.
    result
        How it was found, and proofs.
    graph_document
        The graph itself.
    """

    schema_: Literal["lpsched/schedule/1"] = Field(alias="schema")
    graph: Name
    graph_digest: Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
    period: Positive
    delays: dict[Identifier, Count] = Field(default_factory=dict)
    ops: dict[Identifier, PlacedDocument]
    result: ResultDocument | None = None
    graph_document: dict[str, Any] | None = None


def schedule_from_document(
    raw: Mapping[str, Any], *, source: str | None = None
) -> Schedule:
    """Check a schedule document (and the graph in it) and build the schedule.

    Whether the schedule keeps the rules of its graph is the verifier's business.

    Raises
    ------
    FormatError
        With every fault of the document.
    """
    plain = as_tuples(raw)
    document, faults = validate(ScheduleDocument, plain)
    graph = None
    inner = raw.get("graph_document")
    if isinstance(inner, Mapping):
        try:
            graph = graph_from_document(inner)
        except FormatError as error:
            faults += [
                Fault(f"graph_document.{f.path}".rstrip("."), f.message)
                for f in error.faults
            ]
    if faults:
        raise FormatError(faults, source=source)
    return Schedule(
        graph=document.graph,
        graph_digest=document.graph_digest,
        period=document.period,
        delays={DelayName(k): v for k, v in document.delays.items()},
        ops={
            OpId(k): Placed(None if p.device is None else DeviceId(p.device), p.start)
            for k, p in document.ops.items()
        },
        result=None if document.result is None else _result(document.result),
        graph_document=graph,
    )


def _result(document: ResultDocument) -> Result:
    return Result(
        method=document.method,
        status=Status(document.status),
        objective=document.objective.model_dump(exclude_none=True),
        bound=document.bound.model_dump(exclude_none=True),
        proof={
            k: Proof(kind=p)
            if isinstance(p, str)
            else Proof(kind=p.kind, value=p.value, certificate=p.certificate)
            for k, p in document.proof.items()
        },
        seconds=document.seconds,
        seed=document.seed,
        workers=document.workers,
        version=document.version,
        stop=None if document.stop is None else Stop(document.stop),
        rounding=document.rounding,
        stats=document.stats,
    )


def result_to_document(result: Result) -> dict[str, Any]:
    """Return the `result` object of a schedule file."""
    proof = {
        k: p.kind
        if p.value is None and p.certificate is None
        else {
            "kind": p.kind,
            "value": p.value,
            **({} if p.certificate is None else {"certificate": dict(p.certificate)}),
        }
        for k, p in result.proof.items()
    }
    document: dict[str, Any] = {
        "method": result.method,
        "status": str(result.status),
        "objective": dict(result.objective),
        "bound": dict(result.bound),
        "proof": proof,
        "seconds": None if result.seconds is None else round(result.seconds, 3),
        "seed": result.seed,
        "workers": result.workers,
        "version": result.version,
        "stop": None if result.stop is None else str(result.stop),
        "rounding": None if result.rounding is None else dict(result.rounding),
        "stats": None if result.stats is None else dict(result.stats),
    }
    return {k: v for k, v in document.items() if v is not None}


def schedule_to_document(
    schedule: Schedule, *, with_graph: bool = True
) -> dict[str, Any]:
    """Return the schedule's document, with its whole graph unless told otherwise."""
    document: dict[str, Any] = {
        "schema": SCHEDULE_SCHEMA,
        "graph": schedule.graph,
        "graph_digest": schedule.graph_digest,
        "period": schedule.period,
        "delays": dict(schedule.delays),
        "ops": {
            op: {"device": placed.device, "start": placed.start}
            for op, placed in schedule.ops.items()
        },
    }
    if schedule.result is not None:
        document["result"] = result_to_document(schedule.result)
    if with_graph and schedule.graph_document is not None:
        document["graph_document"] = graph_to_document(schedule.graph_document)
    return document
