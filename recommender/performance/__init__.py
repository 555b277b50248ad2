"""How fast a cluster trains: compute, communication, memory and input, per optimiser step."""
