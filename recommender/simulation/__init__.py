"""One plan, simulated many times: quantiles, states, limits, and the closed form."""
