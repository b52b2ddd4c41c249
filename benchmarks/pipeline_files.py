"""`python -m benchmarks.pipeline_files`: write the instances of pipelines.

What is known of each stays as its file has it: ``lpsched bench --update`` improves it.
"""

from __future__ import annotations

import csv
import io
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import FoldedScalarString

from lpsched.core.instance import Known
from lpsched.core.io import load_instance, write_text

__all__ = ["Case", "cases", "known_of", "text_of"]

_FOLDER = Path(__file__).resolve().parents[1] / "instances"
_ROWS = Path(__file__).resolve().parents[1] / "tests" / "data" / "zero_bubble_rows.csv"

#: Costs of a stage: F, I, W, and what F takes of the memory and I gives back.
Stage = tuple[int, int, int, int, int]

_EQUAL = ((10, 10, 10, 1), (12, 13, 9, 2))
_WIDTH = 84  # of an origin's lines, without their indent


@dataclass(frozen=True, kw_only=True)
class Case:
    """An instance file: stages, devices and microbatches."""

    folder: str
    name: str
    origin: str
    stages: Mapping[str, Stage]
    devices: int
    memory: int
    transfer: int
    microbatches: int
    slow: int | None = None
    flush: bool = False
    arrangement: str | None = None
    time_unit: str | None = None

    @property
    def path(self) -> Path:
        """Where it is stored."""
        return _FOLDER / self.folder / f"{self.name}.yaml"

    def document(self) -> CommentedMap:
        """Return the document, without what is known."""
        layers = [
            _flow(
                name=name,
                forward=f,
                input_grad=i,
                weight_grad=w,
                memory=_flow(F=taken, I=-back),
            )
            for name, (f, i, w, taken, back) in self.stages.items()
        ]
        unit = {} if self.time_unit is None else {"time_unit": self.time_unit}
        training: dict[str, Any] = {
            "mode": "synchronous",
            "microbatches": self.microbatches,
        }
        if self.flush:
            training["flush"] = True
        placement: dict[str, Any] = {"stages": len(self.stages)}
        if self.arrangement is not None:
            placement["arrangement"] = self.arrangement
        return CommentedMap(
            schema="lpsched/instance/1",
            name=self.name,
            origin=_folded(self.origin),
            network=CommentedMap(
                schema="lpsched/network/1", name=self.name, **unit, layers=layers
            ),
            devices=self._devices(),
            link=_flow(latency=self.transfer),
            training=_flow(**training),
            placement=_flow(**placement),
            objective=_listed("period"),
        )

    def _devices(self) -> object:
        if self.slow is None:
            return _flow(count=self.devices, memory=self.memory)
        found = [_flow(id=f"d{d}", memory=self.memory) for d in range(self.devices)]
        found[self.slow]["speed"] = "4/5"
        return found


def cases() -> Iterator[Case]:
    """Every instance of the folders `synchronous` and `zero_bubble`."""
    yield from _equal_stages()
    yield from _little_memory()
    yield from _makespans()
    yield from _unequal_stages()
    yield from _two_stages_a_device()
    yield from _many_microbatches()
    yield from _zero_bubble()


def _alike(count: int, stage: Stage) -> dict[str, Stage]:
    return {f"s{s}": stage for s in range(count)}


def _equal(times: tuple[int, int, int, int], p: int, m: int, memory: int) -> Case:
    """Stages all alike, one a device; the name lacks the memory."""
    f, i, w, c = times
    return Case(
        folder="synchronous",
        name=f"f{f}-i{i}-w{w}-c{c}-p{p}-m{m}",
        origin=f"{_costs(times)}; {_HELD}, {memory} on each device.",
        stages=_alike(p, (f, i, w, 2, 1)),
        devices=p,
        memory=memory,
        transfer=c,
        microbatches=m,
    )


_HELD = "F holds 2, I and W give back 1 each"


def _costs(times: tuple[int, int, int, int]) -> str:
    f, i, w, c = times
    return f"Equal stages of F {f}, I {i}, W {w}, transfers of {c}"


def _equal_stages() -> Iterator[Case]:
    for times in _EQUAL:
        for p, m in ((4, 8), (4, 12), (8, 16), (8, 24), (8, 32)):
            for factor in (2, 4):
                case = _equal(times, p, m, factor * p)
                yield replace(case, name=f"{case.name}-{factor}p")


def _little_memory() -> Iterator[Case]:
    for p, m, memory in ((4, 12, 4), (4, 12, 6), (6, 16, 9), (8, 16, 12)):
        case = _equal(_EQUAL[1], p, m, memory)
        yield replace(
            case,
            name=f"tight-{case.name}-mem{memory}",
            origin=f"{case.origin} That is less than 1F1B takes.",
        )


def _makespans() -> Iterator[Case]:
    for m, factor in ((24, 2), (24, 4), (32, 3)):
        case = _equal(_EQUAL[1], 8, m, factor * 8)
        yield replace(
            case,
            name=f"flush-{case.name}-{factor}p",
            origin=f"Makespan of one iteration. {case.origin}",
            flush=True,
        )


def _unequal_stages() -> Iterator[Case]:
    for p, m, factor in ((4, 12, 2), (8, 24, 2), (8, 24, 4)):
        case = _equal(_EQUAL[1], p, m, factor * p)
        inner = dict(list(case.stages.items())[1:-1])
        yield replace(
            case,
            name=f"embedding-head-p{p}-m{m}-{factor}p",
            origin=(
                "A short first stage (embedding) and a long last one (head) about equal"
                f" stages of F 12, I 13, W 9; transfers of 2, {case.memory} units on"
                " each device."
            ),
            stages={
                "embedding": (3, 1, 3, 1, 0),
                **inner,
                "head": (17, 18, 13, 3, 1),
            },
        )
    for p, m, slow in ((4, 12, 1), (8, 24, 5)):
        case = _equal(_EQUAL[1], p, m, 3 * p)
        yield replace(
            case,
            name=f"slow-device-p{p}-m{m}-3p",
            origin=f"{case.origin} d{slow} runs at 4/5 of the speed.",
            slow=slow,
        )


def _two_stages_a_device() -> Iterator[Case]:
    ways = {"v": "down the devices and back up", "loop": "in a loop"}
    for arrangement, way in ways.items():
        for p, m in ((2, 6), (4, 8)):
            yield Case(
                folder="synchronous",
                name=f"{arrangement}-p{p}-m{m}",
                origin=(
                    f"Two equal stages on each of {p} devices, {way}: F 6, I 7, W 5,"
                    f" transfers of 2; {_HELD}; room for what 1F1B holds of {p} stages"
                    " of twice the size."
                ),
                stages=_alike(2 * p, (6, 7, 5, 2, 1)),
                devices=p,
                memory=4 * p,
                transfer=2,
                microbatches=m,
                arrangement=arrangement,
            )


def _many_microbatches() -> Iterator[Case]:
    case = _equal(_EQUAL[1], 64, 1000, 128)
    yield replace(case, name=f"steady-{case.name}-2p")


def _zero_bubble() -> Iterator[Case]:
    with _ROWS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    editions = {"iclr": "conference", "arxiv": "preprint"}
    for row in rows:
        p, m, hidden = int(row["p"]), int(row["m"]), int(row["hidden"])
        scores = 5 * int(row["heads"]) * 1024
        taken, back = 34 * hidden + scores, 2 * hidden + scores
        times = (int(row["T_F"]), int(row["T_B"]), int(row["T_W"]))
        for factor in (1, 2):
            yield Case(
                folder="zero_bubble",
                name=f"{row['set']}-p{p}-m{m}-h{hidden}-{factor}p",
                origin=(
                    "Zero bubble (Qi et al., ICLR 2024): times of a stage in"
                    " microseconds and its sizes, as published with its"
                    f" {editions[row['set']]} version; {p} stages, {m} microbatches,"
                    f" hidden size {hidden}; room for {factor * p}"
                    " microbatches on each device. Published for this memory:"
                    f" {row[f'span_ZB_{factor}p']}."
                ),
                stages=_alike(p, (*times, taken, back)),
                devices=p,
                memory=factor * p * taken,
                transfer=int(row["T_comm"]),
                microbatches=m,
                time_unit="us",
            )


def _flow(**entries: object) -> CommentedMap:
    found = CommentedMap(entries)
    found.fa.set_flow_style()
    return found


def _listed(*items: object) -> CommentedSeq:
    found = CommentedSeq(items)
    found.fa.set_flow_style()
    return found


def _folded(text: str) -> Any:  # noqa: ANN401 - ruamel's
    """Break lines at blanks, as the folded style allows."""
    found: Any = FoldedScalarString(text)
    lengths = [len(line) + 1 for line in textwrap.wrap(text, _WIDTH)]
    found.fold_pos = [end - 1 for end in accumulate(lengths[:-1])]
    return found


def text_of(case: Case, known: Known | None = None) -> str:
    """Return a case's file, with what is known of its period."""
    document = case.document()
    if known is not None:
        entries = {k: v for k, v in asdict(known).items() if v is not None}
        document["known"] = CommentedMap(period=_flow(**entries))
    yaml = YAML()
    yaml.width = 1000
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue()


def known_of(case: Case) -> Known | None:
    """Return what a case's present file says of its period."""
    return load_instance(case.path).known.get("period") if case.path.exists() else None


def main() -> None:
    """Write every file anew."""
    for case in cases():
        write_text(case.path, text_of(case, known_of(case)))


if __name__ == "__main__":
    main()
