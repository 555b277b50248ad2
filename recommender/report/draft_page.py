"""What `recommend init` understood: network, work, and what was assumed or not read."""

from recommender.job.derive import size_of_work
from recommender.job.draft import Draft
from recommender.job.job import Job
from recommender.report import formatting as fmt
from recommender.report.page import Page, headings

_SHOWN = 6  # keys of a tool's file that say nothing of time or memory


def draft_page(
    draft: Draft, job: Job, written: str, command: str, sources: list[str] | None = None
) -> Page:
    """One row for each thing understood, and the command of the first answer."""
    rows = [("network", draft.network), ("in figures", _figures(job)), ("work", size_of_work(job))]
    each = " per GPU" if job.batch_per_gpu else ""
    rows += [("step", f"batch {job.global_batch:,}{each}, {_steps(job)}")]
    named = f" ({', '.join(sources)})" if sources else ""
    rows += [("read from", f"{draft.tool}{named}")] if draft.tool else []
    rows += [("software", draft.software)] if draft.software else []
    rows += [("assumed", each) for each in draft.assumed]
    rows += [("not read", each) for each in draft.unread]
    rows += [("not used", _unused(draft.unused))] if draft.unused else []
    rows += [("written", written), ("next", command)]
    facts = {
        "written": written,
        "next": command,
        "tool": draft.tool,
        "software": draft.software,
        "network": draft.network,
        "in_figures": _figures(job),
        "work": size_of_work(job),
        "assumed": list(draft.assumed),
        "not_read": list(draft.unread),
        "not_used": list(draft.unused),
    }
    columns = headings(":", "understood:")
    cleaned = tuple((name, fmt.clean(value)) for name, value in rows)
    return Page("", columns, cleaned, 1, facts=facts)


def _figures(job: Job) -> str:
    """What a person checks at a glance: parameters, passes, tokens, samples."""
    trained = fmt.large(job.trainable_parameters)
    parts = [f"{fmt.large(job.parameters)} parameters"]
    if job.active_parameters < job.parameters:
        parts.append(f"{fmt.large(job.active_parameters)} active for a {_part(job)}")
    parts.append(f"{trained} trained{'' if job.method == 'full' else f' ({job.method})'}")
    parts += [f"{job.epochs:.3g} passes"] if job.epochs else []
    if job.tokens_per_sample > 1:
        parts.append(f"{fmt.large(job.samples * job.tokens_per_sample)} tokens")
    return ", ".join([*parts, f"{fmt.large(job.samples)} samples ({job.sample_unit}s)"])


def _part(job: Job) -> str:
    return "token" if job.tokens_per_sample > 1 else job.sample_unit


def _steps(job: Job) -> str:
    return f"{fmt.large(job.steps)} steps{' on one GPU' if job.batch_per_gpu else ''}"


def _unused(keys: tuple[str, ...]) -> str:
    more = f" and {len(keys) - _SHOWN} more, listed in the file" if len(keys) > _SHOWN else ""
    return f"{', '.join(keys[:_SHOWN])}{more}"
