"""Tests of the risk engine."""
