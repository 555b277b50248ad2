"""What a catalog can refuse; `recommender.errors` shows these beside its own."""


class RecommendError(Exception):
    """A refusal that a user can act on: what failed, the value, why, what to do."""


class CatalogError(RecommendError):
    """The catalog cannot be used: missing, truncated, corrupt, or older than allowed."""
