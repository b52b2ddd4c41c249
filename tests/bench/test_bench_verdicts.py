"""Verdicts against best known values, and what of a run is worth keeping."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lpsched.bench import Row, Verdict, improved, judged, store_known
from lpsched.core.instance import Known
from lpsched.core.io import load_instance, parse_text

Values = dict[str, tuple[int, int | None]]


def row(found: Values, status: str = "optimal") -> Row:
    """Make the row of a run from values and bounds found."""
    return Row(
        instance="x",
        file="x.yaml",
        verdict=Verdict.NEW,
        status=status,
        digest="",
        time_limit=60.0,
        seed=0,
        workers=1,
        version="1",
        objective={name: value for name, (value, _) in found.items()},
        bound={name: b for name, (_, b) in found.items() if b is not None},
        proof={name: "cycle" for name, (_, b) in found.items() if b is not None},
        method="cpsat",
        verified=bool(found),
    )


def known(stored: Values) -> dict[str, Known]:
    return {n: Known(value=v, bound=b, seconds=1.0) for n, (v, b) in stored.items()}


@pytest.mark.parametrize(
    ("stored", "found", "verdict", "decided_by"),
    [
        ({"period": (9, 9)}, {"period": (9, 9)}, "equal", None),
        ({"period": (9, 8)}, {"period": (9, 7)}, "equal", None),
        ({"period": (9, 9)}, {"period": (9, 8)}, "unproved", "period"),
        ({"period": (9, 8)}, {"period": (8, 8)}, "better", "period"),
        ({"period": (9, 9)}, {"period": (10, 9)}, "worse", "period"),
        ({"period": (9, 9)}, {"period": (8, 8)}, "failed", "period"),
        ({"period": (9, None)}, {"period": (10, 10)}, "failed", "period"),
        ({}, {"period": (9, 9)}, "new", None),
        (
            {"period": (9, 9), "staleness": (2, 0)},
            {"period": (9, 9), "staleness": (1, 0)},
            "better",
            "staleness",
        ),
        # The shorter period makes the bound of the staleness another one.
        (
            {"period": (9, 8), "staleness": (2, 2)},
            {"period": (8, 8), "staleness": (5, 5)},
            "better",
            "period",
        ),
        (
            {"period": (9, 9), "staleness": (2, 2)},
            {"period": (9, 7), "staleness": (3, 0)},
            "worse",
            "staleness",
        ),
    ],
)
def test_values_decide_before_proofs_and_earlier_objectives_before_later(
    stored: Values, found: Values, verdict: str, decided_by: str | None
) -> None:
    answer = judged(row(found), known(stored))
    assert (answer.verdict, answer.decided_by) == (verdict, decided_by)
    assert (answer.reason is not None) == (verdict == "failed")


def test_no_schedule_is_told_from_none_possible() -> None:
    stored = known({"period": (9, 9)})
    assert judged(row({}, "unknown"), stored).verdict is Verdict.NONE
    assert judged(row({}, "infeasible"), {}).verdict is Verdict.INFEASIBLE
    assert judged(row({}, "infeasible"), stored).verdict is Verdict.FAILED


NAMES = ("period", "communication", "staleness")
BOUNDED = st.integers(5, 9).flatmap(
    lambda value: st.tuples(st.just(value), st.none() | st.integers(0, 5))
)


@given(
    stored=st.lists(BOUNDED, min_size=3, max_size=3),
    found=st.lists(BOUNDED, min_size=3, max_size=3),
)
def test_what_is_kept_is_never_worse_than_either(
    stored: list[tuple[int, int | None]], found: list[tuple[int, int | None]]
) -> None:
    old = known(dict(zip(NAMES, stored, strict=True)))
    run = row(dict(zip(NAMES, found, strict=True)))
    new = improved(old, run)
    values = [[value for value, _ in values] for values in (stored, found)]
    assert [new[name].value for name in NAMES] == min(values)
    bounds = [bound for _, bound in (stored[0], found[0]) if bound is not None]
    assert new["period"].bound == max(bounds, default=None)
    assert improved(new, run) == new


def test_a_row_that_failed_changes_nothing() -> None:
    stored = known({"period": (9, 9)})
    assert improved(stored, judged(row({"period": (8, 8)}), stored)) == stored


YAML_TEXT = """\
schema: lpsched/instance/1
name: two  # a remark
known:
  period:
    value: 9
    bound: 7

# On the machine.
network: tiny-mlp
devices: 2
"""


def test_only_the_known_values_of_a_file_are_touched(tmp_path: Path) -> None:
    path = tmp_path / "two.yaml"
    path.write_text(YAML_TEXT)
    better = {"period": Known(value=8, bound=8, proof="cycle", seconds=0.5)}
    assert store_known(path, better)
    assert not store_known(path, better)
    before, after = YAML_TEXT.splitlines(), path.read_text().splitlines()
    assert after[:3] == before[:3]
    assert after[3:4] == [
        "  period: {value: 8, bound: 8, proof: cycle, seconds: 0.5}",
    ]
    assert after[4:] == before[6:]


@pytest.mark.parametrize("name", ["two.yaml", "two.json"])
def test_known_values_are_added_where_none_are(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    graph = '"name": "g", "devices": [{"id": "d"}], "ops": []'
    path.write_text(
        '{"schema": "lpsched/instance/1", "graph": {"schema": "lpsched/graph/1", '
        f"{graph}}}}}"
    )
    before = parse_text(path.read_text(), source=name)
    stored = {"period": Known(value=1, method="list+cpsat")}
    assert store_known(path, stored)
    assert load_instance(path).known == stored
    after = parse_text(path.read_text(), source=name)
    del after["known"]
    assert after == before
