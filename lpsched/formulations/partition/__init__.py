"""Least communication by set partitioning, where devices are alike or in groups."""

from lpsched.formulations.partition.least import PartitionOutcome, least_communication
from lpsched.formulations.partition.solve import solve_at_period

__all__ = ["PartitionOutcome", "least_communication", "solve_at_period"]
