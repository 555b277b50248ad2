"""Plain data of question and answer: limits, plans, simulations."""
