"""What to do when spot goes away: fallback policies, replay on recorded markets, back-tests."""
