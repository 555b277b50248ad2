"""Simulates one plan many times: quantiles, states, limits, and the closed form beside them."""
