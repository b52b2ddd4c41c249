"""Numeric execution with PyTorch: measure models, run schedules, compare.

Modules here but `source` import torch when they are imported, and nothing else of
lpsched imports them before it is asked to.
"""
