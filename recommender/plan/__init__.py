"""Plain data of questions and answers: limits, plans, simulations."""
