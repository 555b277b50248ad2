"""The providers: one folder each, and the contract that all of them keep."""
