"""What instances/ states is true, as far as a test has time to see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.instances import FAMILIES, written
from lpsched.analysis.bounds import period_bound
from lpsched.bench import Case, Verdict, find_cases, run_case
from lpsched.core.io import load_instance, parse_text
from lpsched.network import compile_instance, find_shipped
from lpsched.solve import SolveParams
from lpsched.verify import Verdict as ProofVerdict
from lpsched.verify import check_proof

INSTANCES = Path(__file__).resolve().parents[2] / "instances"
CASES = {Path(case.file).stem: case for case in find_cases([INSTANCES])}


def test_the_names_of_instances_are_those_of_their_files_and_differ() -> None:
    names = [case.instance.name for case in CASES.values()]
    assert names == list(CASES)
    assert len(find_cases([INSTANCES])) == len(CASES)


#: Chains whose optima no run of `lpsched bench` has proved in five minutes.
UNTIMED = ("chain8-s0", "chain8-s4", "chain8-s6", "chain8-s8")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_best_known_values_are_complete(case: Case) -> None:
    """Every objective has value, bound, method and time, and a bound has its proof.

    Of some chains the optima are proved elsewhere (optima.json), no time is known.
    """
    known = case.instance.known
    assert list(known) == list(case.instance.objective)
    for entry in known.values():
        assert entry.method is not None
        assert entry.seconds is not None or case.instance.name in UNTIMED
        assert entry.bound is None or entry.bound <= entry.value
        assert (entry.bound is None) == (entry.proof is None)


@pytest.mark.parametrize("network", ["vgg16", "alexnet"])
def test_another_device_never_makes_the_best_known_period_longer(network: str) -> None:
    periods = [
        CASES[f"{network}-{devices}"].instance.known["period"].value
        for devices in range(2, 17)
    ]
    assert periods == sorted(periods, reverse=True)


def _generated() -> Iterator[tuple[str, str]]:
    for family in FAMILIES:
        for name, document in family():
            yield f"{family.__name__}/{name}", written(name, document)


@pytest.mark.parametrize(("name", "text"), list(_generated()))
def test_generated_instances_are_what_the_generator_writes(
    name: str, text: str
) -> None:
    """``python -m benchmarks.instances`` makes them so, keeping what is known."""
    stored = (INSTANCES / f"{name}.yaml").read_text()
    assert stored.startswith(text)
    rest = parse_text(stored.removeprefix(text), source=f"{name}.yaml")
    assert list(rest) == ["known"]


@pytest.mark.parametrize("family", ["small", "chains8"])
def test_instances_agree_with_the_table_of_optima(family: str) -> None:
    optima = json.loads((INSTANCES / family / "optima.json").read_text())
    for name, expected in optima.items():
        # instances/chains8 states optima for each largest delay; its graphs allow 4.
        values = expected if family == "small" else expected["4"]
        known = CASES[name].instance.known
        assert {key: entry.value for key, entry in known.items()} == values
        assert {key: entry.bound for key, entry in known.items()} == values


#: Of each family those whose bounds take no time.
LIGHT = [
    *(f"alexnet-{devices}" for devices in (2, 5, 9, 16)),
    "vgg16-8",
    "gpt2-small-8",
    "alexnet-one-fast",
    "vgg16-two-fast-two-slow",
    "tiny-mlp-3-stale1",
    "lenet5-2-stale3",
    "lenet5-2-102k",
    "chain5-p4-s8",
    "chain8-s3",
]


@pytest.mark.parametrize("name", LIGHT)
def test_bounds_found_anew_do_not_exceed_the_stored_values(name: str) -> None:
    """The certificate is checked without any solver, and the stored bound is met.

    A bound stored with a certificate is one that the analysis finds; a solver's word
    may be better.
    """
    instance = CASES[name].instance
    graph = compile_instance(instance).graph
    known = instance.known["period"]
    bound = period_bound(graph)
    verdict = check_proof(graph, "period", bound.value, bound.proof)
    assert verdict.status is ProofVerdict.ACCEPTED
    assert bound.value <= (known.bound or 0) <= known.value
    if known.proof == bound.proof.kind:
        assert bound.value == known.bound


#: Solved in the blink of an eye.
QUICK = ["alexnet-4", "tiny-mlp-2-stale1", "tiny-mlp-3-stale3", "chain4-p3-s4"]


@pytest.mark.parametrize("name", QUICK)
def test_stored_optima_are_found_again(name: str) -> None:
    row = run_case(CASES[name], SolveParams())
    assert row is not None
    assert row.verdict is Verdict.EQUAL
    assert row.status == "optimal"


def test_networks_are_named_not_copied() -> None:
    """What is shipped in models/ stands in no instance again."""
    for case in CASES.values():
        text = Path(case.file).read_text()
        network = case.instance.network
        if network is not None and find_shipped(network.name) is not None:
            assert f"network: {network.name}\n" in text
            assert load_instance(case.file, resolve=find_shipped) == case.instance
