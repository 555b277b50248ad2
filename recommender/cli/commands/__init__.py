"""The commands beside the plan: jobs, catalog, config and those about the tool itself."""
