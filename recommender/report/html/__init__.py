"""The report: one HTML file that holds an answer, its pictures and the plans to ask it about."""
