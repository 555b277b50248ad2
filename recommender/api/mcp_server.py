"""Serves the tools of `agent_tools` to agents over the Model Context Protocol on standard streams.

It needs the official SDK (extra `mcp`), which is imported by name so that type checks run without
it. Errors of a call are reported to the agent with the messages of the command line.
"""

from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

from recommender.api.agent_tools import TOOLS
from recommender.catalogs.errors import RecommendError
from recommender.errors import UsageError
from recommender.plan.version import __version__

INSTRUCTIONS = (
    "Plans which cloud GPU VMs to rent for a training job. Call init_job for a model of one's own "
    "(or name a job that comes with the tool), recommend_plan with a deadline or a budget, "
    "export_plan for the files that run it. Costs are USD, times seconds; tell the user the chance "
    "and the age of the prices with every figure. Nothing is ever rented."
)


def server() -> Any:
    """Build the server with all tools; raises `UsageError` if the SDK is not installed."""
    try:
        sdk = import_module("mcp.server")
    except ImportError:
        raise UsageError("the MCP SDK is not installed: pip install mcp") from None
    made = sdk.MCPServer("recommend", instructions=INSTRUCTIONS, version=__version__)
    for tool in TOOLS:
        made.add_tool(_with_plain_errors(tool), structured_output=True)
    return made


def serve() -> None:
    """Answer calls on standard input until it ends."""
    server().run("stdio")


def _with_plain_errors(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """A tool whose refusals reach the agent in their own words."""
    refusal = import_module("mcp.server.mcpserver.exceptions").ToolError

    @wraps(tool)
    def call(*words: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*words, **named)
        except UsageError as error:
            raise refusal("; ".join(error.problems)) from None
        except RecommendError as error:
            raise refusal(f"{error}") from None

    return call
