"""What can be said of a graph or schedule by arithmetic: bounds, retiming, metrics."""
