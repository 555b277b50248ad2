"""What an answer takes for granted, as sentences."""

from recommender.plan import OWN_TRACE, Plan
from recommender.question import Question


def of(question: Question, plans: tuple[Plan, ...]) -> tuple[str, ...]:
    """Everything assumed that could change the answer."""
    job, choice = question.job, question.choice
    said = []
    if not job.data.at:
        said.append("data location unknown, egress and staging not included (--data-at)")
    if job.setup_s is None and job.image == "cold":
        said.append("cold container (image pull 310 s)")
    spot = [p.spot for p in plans if p.spot is not None]
    if spot:
        said.append(_spot(spot[0].name, spot[0].basis, spot[0].as_of))
    if choice.on_demand_obtainable is None:
        said.append("on-demand capacity at once: 99 % small GPUs, 90 % A100, 70 % H100 and newer")
    if not choice.quotas_known:
        said.append("quotas not checked (--quota)")
    if job.assumed:
        said.append("of the job: " + ", ".join(job.assumed))
    return tuple(said)


def _spot(name: str, basis: str, as_of: str) -> str:
    if basis.startswith(OWN_TRACE):
        part = basis.removeprefix(OWN_TRACE)
        return f"spot law: {OWN_TRACE} of {name}, fitted {as_of}{part}"
    how = {
        "measured": "as measured until",
        "transferred": "carried over from other GPUs, traces until",
    }.get(basis, "as stated, class of")
    return f"spot runs and outages of class {name} {how} {as_of}"


def warnings(question: Question, plans: tuple[Plan, ...]) -> tuple[str, ...]:
    """What a reader should know before trusting the first plan."""
    if not plans:
        return ()
    flags = {m.price_flag for m in plans[0].machines} | {s.price_flag for s in plans[0].sites}
    said = []
    if any(m.price_kind == "derived" for m in plans[0].machines):
        said.append("plan 1 rests on a derived price; --quoted-only leaves such prices out")
    if "floor" in flags and plans[0].machines[0].provider == "aws":
        said.append("a zone of plan 1 is quoted at the 10 % floor; its type's median is used")
    return tuple(said)
