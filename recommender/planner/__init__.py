"""From a job to an answer: problem, search, plans, ranking, sensitivity, infeasibility."""
