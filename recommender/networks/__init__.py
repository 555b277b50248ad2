"""Figures of published architectures: parameters, FLOP, widths."""
