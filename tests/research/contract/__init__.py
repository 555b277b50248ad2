"""What the planner answers to more than a thousand questions, before and after a change."""
