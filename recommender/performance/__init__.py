"""Training speed of a cluster: compute, communication, memory and input per optimiser step."""
