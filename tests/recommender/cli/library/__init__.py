"""Tests of exported files."""
