"""The instances of pipelines as they are made, and what is known of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pipelines import zero_bubble_rows

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.pipeline_files import Case, cases, known_of, text_of
from lpsched.core.io import load_instance, parse_text, read_document
from lpsched.core.result import Status
from lpsched.network import compile_instance
from lpsched.solve import SolveParams, solve

CASES = {case.name: case for case in cases()}
SMALL = [
    name
    for name, case in CASES.items()
    if case.devices <= 4 and case.arrangement is None and "tight" not in name
]


def test_the_files_are_those_that_are_made() -> None:
    """`make instances` writes them all and leaves what is known as it is."""
    for case in CASES.values():
        made = parse_text(text_of(case, known_of(case)), source=case.name)
        assert read_document(case.path) == made
    folders = {case.path.parent for case in CASES.values()}
    stored = {path for folder in folders for path in folder.iterdir()}
    assert stored == {case.path for case in CASES.values()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_has_its_best_value_bound_and_proof(case: Case) -> None:
    known = known_of(case)
    assert known is not None
    assert known.bound is not None
    assert known.proof is not None
    work = max(f + i + w for f, i, w, *_ in case.stages.values())
    assert case.microbatches * work <= known.bound <= known.value


def test_what_is_known_is_no_longer_than_published() -> None:
    rows = zero_bubble_rows()
    assert len(rows) == 14
    for row in rows:
        for factor in (1, 2):
            [case] = [
                case
                for case in CASES.values()
                if case.folder == "zero_bubble"
                and case.stages["s0"][:3] == row.times[:3]
                and case.microbatches == row.microbatches
                and case.memory == factor * row.stages * row.taken
            ]
            known = known_of(case)
            assert known is not None
            assert known.value <= row.spans[f"ZB_{factor}p"]


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_are_solved_to_what_is_known(name: str) -> None:
    graph = compile_instance(load_instance(CASES[name].path)).graph
    result = solve(graph, SolveParams(objective=("period",), time_limit=30)).result
    known = known_of(CASES[name])
    assert known is not None
    assert result.objective["period"] == known.value
    assert (result.status is Status.OPTIMAL) == (known.value == known.bound)
