"""Merge folders of files as people have them with the code of several trees, and print a verdict on each result.

    python -m tests.cases.verdicts FOLDER --tree OLD --tree NEW

A case is a folder in FOLDER: the content of `assets`, and maybe a `project.sed` that edits project.yml. Its name begins
with a number of READ or STOPS.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

# What is right. Cases that are read: the entities of each of some labels, and a pattern of what the merge says; where
# `!` begins it, silence is a mistake, and not only unclear. Cases in neither table are read as `60: PER LOC DATE`.
READ = """
01 = 1: EVENT GROUP LOC; 19 34 83 = 60: PER LOC; 20 = 60: PER LOC = are parts of 15 texts; 21 = 60: NO ON null
22 = 60: NO SE 1; 24 = 30: Birth_Place BIRTH_PLACE = may be one label; 33 = 50: PER LOC DATE = lone surrogate
69 = 30: PER LOC DATE = under `annotation`; 70 = 30: PER LOC, 60: DATE = !60 (of 210 )?spans; 71 71b = 60: person
79 = 30: PER LOC DATE; 80 = 40: PER LOC DATE; 109 = 60: PER LOC NUMBER; 113 = 60: PER LOC = in capitals
110 = 60: PER DATE, 30: LOC = without a label|no label; 197 = 60: Date Place = !write Full_Name
232 = 60: PER LOC DATE = is a part of the other; 240 = 60: PER LOC DATE Sentiment = the layer Sentiment
300 = 60: PER LOC DATE = !180 of 360 spans; 313 = 60: PER LOC DATE = one text; 316 = 60: LOC DATE, 120: PER
318 = 30: PER LOC DATE = !HTML|escaped; 340 = 30: PER LOC DATE = !unsupported format
355 = 30: PER LOC DATE = !not annotated; 360 = 30: PER LOC DATE = !empty
379 = 40: PER LOC, 30: DATE = one corpus; 384 = 60: AMOUNT"""
# Cases that stop: what the merge says.
STOPS = """
02 314 = have no label; 12 = ner-annotator; 13 = spaCy 2's training JSON; 15 = UTF-16; 17 18 380 = inclusive
25 81 = folders share; 26 = unpack it; 27 = HyperText; 31 = `pages`; 32 106 = unsupported interface; 49 = ann, line 1
66 = duplicates: union; 82 = files of brat's; 101 120 = no start; 105 = audio, in seconds
123 123-inline-xml-in-text-as-advised = text has tags|unsupported format
124 = aren't a list of spans|unsupported format; 124-labels-to-strings-as-advised = unsupported format
129 = count `tokens`; 134 = Azure; 135 136 = BioC; 139 = tagtog
199 = `encoding`; 202 = a later row of the same text; 219 = Label Studio; 317 = crlf; 320b = look like tags
318-html-escaped-text-as-advised = HTML|escaped; 321 = pieces of words; 373 = lang: zh"""
LOSSES = r"can't be (used|converted)|inside a token"  # which a merge says
RIGHT, REFUSED, UNCLEAR, SAID = "right", "refused with the cause", "unclear", "wrong and said"
SILENT = "wrong and silent"
ADVISED = f"{SILENT} after advice"


def parse(table: str) -> dict[str, list[str]]:
    """Parse a table, by case."""
    rows = [row.split(" = ") for row in re.split("; |\n", table.strip())]
    return {case: columns for cases, *columns in rows for case in cases.split()}


def judge(name: str, status: int, printed: str, entities: Mapping[str, int]) -> str:
    """Return the verdict on a result of a case."""
    words, of_reads, of_stops = " ".join(printed.split()), parse(READ), parse(STOPS)
    case = name if name in of_stops else name.partition("-")[0]
    stops, read = of_stops.get(case), of_reads.get(case, ["60: PER LOC DATE"])
    pattern = (stops or [*read, ""][1:])[0]
    said = bool(pattern) and re.search(pattern.removeprefix("!"), words) is not None
    if status:
        return REFUSED if said else UNCLEAR
    parts = [part.split(": ") for part in read[0].split(", ")]
    wanted = {label: int(n) for n, labels in parts for label in labels.split()}
    as_wanted = not stops and {label.replace(" ", "_"): n for label, n in entities.items()} == wanted
    if as_wanted and (said or not pattern.startswith("!")):
        return RIGHT if said or not pattern else UNCLEAR
    return ADVISED if name.endswith("as-advised") else SAID if re.search(LOSSES, words) else SILENT


def merge_cases(folder: Path) -> None:
    """Merge each case with the code on Python's path, and print name, status, words and entities as a line of JSON."""
    from tests.cases.making import PROJECT, merge_folder

    for case in sorted(one for one in folder.iterdir() if one.is_dir()):
        edits = ["-f", case / "project.sed"] if (case / "project.sed").exists() else ["-e", ""]
        project = subprocess.run(["sed", "-E", *edits, PROJECT], check=True, stdout=subprocess.PIPE, text=True).stdout
        files = {str(one.relative_to(case)): one.read_bytes() for one in case.rglob("*") if one.is_file()}
        with tempfile.TemporaryDirectory() as root:
            made = merge_folder(Path(root), files, project)
        print(json.dumps([case.name, made.status, made.printed, made.entities]), flush=True)


def verdicts_cli(folder: Path, tree: Annotated[list[Path] | None, typer.Option()] = None) -> None:
    """Print the verdicts on merges with the code of each tree; without a tree, the results of the one on the path."""
    if not tree:
        merge_cases(folder)
        return
    verdicts: dict[str, list[str]] = {}
    for root in tree:
        command = [sys.executable, Path(__file__).absolute(), folder.absolute()]
        environment = os.environ | {"PYTHONPATH": str(root.absolute())}
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root, env=environment)
        for name, *found in map(json.loads, done.stdout.splitlines()):
            verdicts.setdefault(name, []).append(judge(name, *found))
    print("| case |", *(f"{root} |" for root in tree), "\n|---|" + "---|" * len(tree))
    for name, of in sorted(verdicts.items(), key=lambda item: int(re.split(r"\D", item[0])[0])):
        print(f"| {name} |", *(f"{one} |" for one in of))
    for verdict in (RIGHT, REFUSED, UNCLEAR, SAID, SILENT, ADVISED):
        counts = [Counter(of[place] for of in verdicts.values())[verdict] for place in range(len(tree))]
        print(f"| **{verdict}** |", *(f"{n} |" for n in counts))


if __name__ == "__main__":
    typer.run(verdicts_cli)
