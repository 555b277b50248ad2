"""What a published architecture amounts to: parameters, FLOP, widths."""
