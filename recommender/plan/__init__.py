"""Plain data of a question and its answer: limits, plans, simulations."""
