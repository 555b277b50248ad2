"""Choosing the machines: exact search over clusters, with bounds and a linear program."""
