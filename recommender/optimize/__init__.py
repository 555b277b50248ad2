"""The choice of machines: a pool of plans, rated and simulated, and a linear program."""
