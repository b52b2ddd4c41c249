"""Files cut short or with bytes changed are read or refused, never a crash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpsched.core.io import network_from_document, network_to_document
from lpsched.core.network import Network
from lpsched.errors import FormatError, InstanceError
from lpsched.network import compile_network
from lpsched.network.readers import read_dnn_partitioning, read_pipedream

PROFILE = (
    Path(__file__).resolve().parents[1] / "data" / "profile_small.txt"
).read_text()
NODE = {"supportedOnFpga": 1, "cpuLatency": 2.5, "isBackwardNode": 0, "size": 3.5}
WORKLOAD = json.dumps(
    {
        "maxSizePerFPGA": 6.0,
        "maxFPGAs": 2,
        "maxCPUs": 1,
        "nodes": [{**NODE, "id": i, "fpgaLatency": i, "colorClass": i} for i in (1, 2)],
        "edges": [{"sourceId": 1, "destId": 2, "cost": 0.25}],
    },
    indent=1,
)
#: What a careless hand or a broken disk might leave.
SCRAPS = ["nan", "-1", "1e999", "[", "]", "{", "\t", "\n", " -- ", "--", ",", '"', "0",
          "\\u0000", "é", "null", "true", "1e-300", "node1", "=", ""]  # fmt: skip


def damaged(text: str, rng: Random) -> str:
    """Return the text with a few places changed, or cut short."""
    if rng.random() < 0.2:
        return text[: rng.randrange(len(text))]
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(len(text))
        end = place + rng.choice([0, 1, 1, 5, 40])
        text = text[:place] + rng.choice(SCRAPS) + text[end:]
    return text


@pytest.mark.parametrize(
    ("read", "text"),
    [(read_pipedream, PROFILE), (read_dnn_partitioning, WORKLOAD)],
    ids=["pipedream", "dnn-partitioning"],
)
@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=300)
def test_damaged_files_are_read_or_refused_by_name(
    read: Callable[..., object], text: str, seed: int
) -> None:
    told = "file.txt: "
    try:
        read(damaged(text, Random(seed)), source="file.txt")
    except FormatError as error:
        told = str(error)
    assert told.startswith("file.txt: ")


@given(seed=st.integers(0, 10**6))
@settings(deadline=None, max_examples=100)
def test_what_is_read_can_be_written_and_compiled(seed: int) -> None:
    """A profile that passes the reader passes every later check, but for its sum."""
    try:
        found = read_pipedream(damaged(PROFILE, Random(seed)), source="file.txt")
    except FormatError:
        return
    network: Network = found.document
    assert network_from_document(network_to_document(network)) == network
    try:
        compile_network(network, devices=2)
    except InstanceError as error:
        assert "use a longer tick" in str(error)  # noqa: PT017 - not always raised
