"""`recommend export`: files that run a plan of an answer."""

from pathlib import Path

from recommender.cli.error_collector import ErrorCollector
from recommender.cli.flags import Word, argument, flag, switch
from recommender.cli.groups import command_app
from recommender.cli.screen import write_text
from recommender.cli.written_files import write_export
from recommender.errors import UsageError
from recommender.export.answer_file import read_answer
from recommender.export.files import ExportFile
from recommender.export.start import TARGETS, usual_target
from recommender.export.targets import export_files


def export(
    answer: str = argument("ANSWER.json", "An answer written by recommend ... --json."),
    to: Word = flag(TARGETS, "Tool that will run the plan (skypilot, or one that can)."),
    plan: Word = flag("N", "Number of the plan, or its role such as cheapest (the leading plan)."),
    output: Word = flag(
        "DIR", "Folder for the files; without it, a single file is printed.", "-o", "--output"
    ),
    force: bool = switch("Overwrite existing files."),
) -> None:
    """Write the files that run a plan; nothing is rented until you start them.

    \b
    recommend --deadline 24h llama3-8b-lora --json > answer.json
    recommend export answer.json --to skypilot -o run
    """
    errors = ErrorCollector()
    target = errors.choose(to, "--to", TARGETS, "") or None
    errors.raise_all()
    found = read_answer(Path(answer))
    run = found.described(found.named(plan))
    if output is None:
        write_text(_only(export_files(run, target or usual_target(run.plan), "")).text)
    else:
        write_export(run, target, output, force)


def _only(files: tuple[ExportFile, ...]) -> ExportFile:
    if len(files) > 1:
        names = ", ".join(each.name for each in files)
        raise UsageError(f"the plan takes several files ({names}); name a folder with -o DIR")
    return files[0]


command = command_app("export", export)
