"""The published methods, as functions from graph to schedule."""
