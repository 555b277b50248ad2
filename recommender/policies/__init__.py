"""Fallback policies for lost spot capacity: rules, replay on recorded markets, backtests."""
