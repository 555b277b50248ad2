"""`recommend mcp`: the tools for agents, over standard input and output."""

from recommender.cli.groups import command_app


def mcp() -> None:
    """Serve agents over the Model Context Protocol, on standard input and output.

    \b
    recommend mcp
    """
    from recommender.api.mcp_server import serve

    serve()


command = command_app("mcp", mcp)
