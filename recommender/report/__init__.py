"""Views of an answer: table, JSON, CSV, Markdown, and the explanation of one plan."""
