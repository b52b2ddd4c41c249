"""Exact load balancing: the least period where delays are free."""

from lpsched.formulations.balance.solve import BalanceOutcome, balance

__all__ = ["BalanceOutcome", "balance"]
