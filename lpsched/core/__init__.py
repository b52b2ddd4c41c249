"""Frozen data shared by everything: graph, schedule, result. No algorithm."""
