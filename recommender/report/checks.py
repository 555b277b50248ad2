"""What `--verify` found: the printed figures beside histories of another seed."""

from recommender.plan import Answer, Check, Difference
from recommender.report import text
from recommender.report.lines import Line, labelled, paragraph

_ERRORS = 3.0  # standard errors beyond which a difference is no accident


def check_lines(answer: Answer, width: int) -> list[Line]:
    """One paragraph per plan; nothing where nothing was verified."""
    if not answer.checks:
        return []
    runs, seed = answer.checks[0].runs, answer.checks[0].seed
    title = f"Verified with {runs:,} other runs each (seed {seed})"
    lines = [Line(""), *paragraph(title, width, "strong")]
    for check in answer.checks:
        lines += labelled(f"plan {check.rank}", check_words(check), width)
    return lines


def check_words(check: Check) -> str:
    """The differences of one plan: "cost 104 USD printed, 103 simulated (-0.6 %, ± 0.8 %)"."""
    said = [_words(each) for each in check.differences]
    far = [d.figure for d in check.differences if abs(d.simulated - d.printed) > _ERRORS * d.error]
    names = text.listing([name.partition("_")[0] for name in far])
    beyond = f"; {names}: more than {_ERRORS:g} sampling errors apart" if far else ""
    return "; ".join(said) + beyond


def _words(d: Difference) -> str:
    if d.figure == "chance":
        pair = f"chance {100 * d.printed:.1f} % printed, {100 * d.simulated:.1f} % simulated"
        return f"{pair} ({100 * (d.simulated - d.printed):+.1f}, ± {100 * d.error:.1f})"
    name, write = ("cost", _usd) if d.figure == "cost_usd" else ("time", text.duration)
    share, error = d.simulated / d.printed - 1.0, d.error / d.printed
    pair = f"{name} {write(d.printed)} printed, {write(d.simulated)} simulated"
    return f"{pair} ({100 * share:+.1f} %, ± {100 * error:.1f} %)"


def _usd(x: float) -> str:
    return f"{text.three(x)} USD"
