"""From a network and a training regime to the graph that is scheduled."""
