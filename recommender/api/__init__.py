"""What other programs call: Python, and agents."""
