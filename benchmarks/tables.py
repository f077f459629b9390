"""Put the numbers of benchmarks/results into the pages: tables, and numbers in a sentence.

    python -m benchmarks.tables

A page has a table between `<!-- result: NAME -->` and `<!-- end -->`: all rows of NAME.json, and the command that made
them. A number in a sentence is a link to its file, whose title names the first cells of the row, and the column:
`[0.64](benchmarks/results/pipelines.json "food_data / 50 / all labels on all texts / small transformer / F1")`. It
keeps its decimals. A picture `NAME.svg` of F1 against CPU seconds is drawn from NAME.json.

Between `<!-- section: NAME -->` and `<!-- end -->` a page has the settings of a section of project.yml: those in the
file, with its comments, and, with a +, the others of the section's Struct, with the meanings of `OTHERS`.
"""

import re
from pathlib import Path
from typing import Any

import msgspec
import typer

from benchmarks.measure import RESULTS, Result, as_table, as_text
from benchmarks.plot import draw
from labelwise.base.sections import CheckSection, DvcSection, PackageName, ReportSection, VarsSection
from labelwise.merge.rules.policies import Policies
from labelwise.merge.rules.settings import Settings
from labelwise.sources.brat import BratOptions

PAGES = (Path("README.md"), *sorted(Path("docs").glob("*.md")), Path("benchmarks/README.md"))
BLOCK = re.compile(r"(<!-- result: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
SECTION = re.compile(r"(<!-- section: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
KEY = re.compile(r"(?m)^  (\w+):(?: (.*?))?(?: +# (.*))?$((?:\n  - .*)*)")
POLICY = "a [policy](#policies)"
POLICIES = {*Policies.__struct_fields__, "annotators"}  # with a comment in project.yml, and their own table
# The Struct of each section, and the meaning of each key that project.yml hasn't.
OTHERS: dict[str, tuple[type[msgspec.Struct], dict[str, str]]] = {
    "vars": (VarsSection, {}),
    "dvc": (DvcSection, {}),
    "brat": (
        BratOptions,
        {
            "split": "by folders named train, dev and test, or by a hash of the text: folder | auto",
            "missing_ann": POLICY,
            "empty_ann": "a text with an empty annotation file: empty | skip",
            "discontinuous": POLICY,
            "shifted": POLICY,
            "encoding": "encoding of texts and annotations",
            "duplicates": "for brat's texts; empty: as in the section merge",
            "expect_losses": "true: continue even if the corpus looks misread",
        },
    ),
    "merge": (
        Settings,
        {
            "duplicates": POLICY,
            "overlap": POLICY,
            "by": "keys of the tasks' meta, or dataset: F1 for the texts of each value",
            "split_salt": "change it for another random split",
            "near_duplicates": POLICY,
            "near_similarity": "minimum share of common word triples in nearly equal texts, 0.5 to 1",
            "docs_per_partition": "maximum average number of texts in a .spacy file",
        },
    ),
    "check": (
        CheckSection,
        {
            "folds": "number of pipelines, each trained without a different part of the training set",
            "steps": "training steps of each; 0: from the config",
        },
    ),
    "report": (
        ReportSection,
        {
            "baseline": "git revision to compare with, such as main; empty: the last commit with other scores",
            "annotators": "true: name the annotators, with their agreement and their answers",
        },
    ),
    "package": (PackageName, {"description": "purpose of the pipeline, for the model card"}),
}
ELSEWHERE = {"tokenizer"}  # fields that aren't keys of the section
PLOT = re.compile(r"!\[[^\]]*\]\((?:docs/)?(\w+)\.svg\)")
NUMBER = re.compile(r'\[([^\]]+)(\]\(\S*results/(\w+)\.json "([^"]+)"\))')


class NotInStep(Exception):
    """A page names a result, row or column that doesn't exist."""


def read_result(name: str) -> Result:
    """Read a result.

    RAISES (NotInStep): if it doesn't exist.
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise NotInStep(f"{path} isn't there: name another result, or run the benchmark that writes it")
    return msgspec.json.decode(path.read_bytes(), type=Result)


def update(page: str) -> str:
    """Return a page with the results' numbers.

    RAISES (NotInStep): if a name in it doesn't exist.
    """
    return NUMBER.sub(write_number, BLOCK.sub(write_block, SECTION.sub(write_section, page)))


def draw_plots(page: str) -> dict[Path, str]:
    """Draw a page's pictures, by file.

    RAISES (NotInStep): if a result doesn't exist.
    """
    return {Path("docs", f"{name}.svg"): draw(read_result(name)) for name in PLOT.findall(page)}


def write_section(match: re.Match[str]) -> str:
    """Format a section's settings: those in project.yml, then the others.

    RAISES (NotInStep): if the file and OTHERS don't have each key of the section's Struct once.
    """
    begin, name, end = match.groups()
    struct, others = OTHERS[name]
    text = Path("project.yml").read_text(encoding="utf8")
    _, title, section = (
        re.split(rf"(?m)^{name}:(?: +# (.*))?\n", text, maxsplit=1) if f"\n{name}:" in text else ("",) * 3
    )
    section = re.split(r"(?m)^(?=\S)", section, maxsplit=1)[0]
    rows = {
        key: (value or f"[{_join(items)}]", comment or title) for key, value, comment, items in KEY.findall(section)
    }
    defaults = {
        field.name: field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
        for field in msgspec.structs.fields(struct)
        if field.name not in ELSEWHERE
    }
    if [*rows, *others] != list(dict.fromkeys([*rows, *others])) or {*rows, *others} != {*defaults}:
        raise NotInStep(f"section {name}: {sorted({*rows, *others} ^ {*defaults})} or a key that stands twice")
    lines = [_row("", key, value, POLICY if key in POLICIES else comment) for key, (value, comment) in rows.items()]
    lines += [_row("+", key, _as_yaml(defaults[key]), comment) for key, comment in others.items()]
    return "\n".join([begin.rstrip("\n"), "| key | default | meaning |", "|---|---|---|", *lines, end])


def _join(items: str) -> str:
    return ", ".join(re.findall(r"- (.*)", items))


def _as_yaml(value: Any) -> str:
    return "''" if value == "" else str(value).lower() if isinstance(value, bool) else str(value)


def _row(plus: str, key: str, value: str, comment: str) -> str:
    escaped = comment.replace("|", "\\|")
    return f"| {plus}`{key}` | `{value}` | {escaped} |"


def write_block(match: re.Match[str]) -> str:
    """Format the content between two markers."""
    begin, name, end = match.groups()
    result = read_result(name)
    content = "\n".join(["```text", *result.printed, "```"]) if result.printed else as_table(result)
    source = f"`{result.command}`; {result.date or 'date unknown'}, commit {result.commit or 'unknown'}. {result.note}"
    return f"{begin}{content}\n\n{source.strip()}\n{end}"


def write_number(match: re.Match[str]) -> str:
    """Format a linked number with its decimals; of three, the median."""
    old, link, name, title = match.groups()
    *row, column = title.split(" / ")
    result = read_result(name)
    forms = list(result.columns.values())
    rows = [
        cells for cells in result.rows if [as_text(*pair) for pair in zip(cells, forms, strict=True)][: len(row)] == row
    ]
    if column not in result.columns or len(rows) != 1:
        raise NotInStep(f'{name}.json, "{title}": {len(rows)} rows begin so; columns: {", ".join(result.columns)}')
    cell = rows[0][list(result.columns).index(column)]
    value = cell[0] if isinstance(cell, tuple) else cell
    if not isinstance(value, int | float):
        raise NotInStep(f'{name}.json, "{title}": {value!r} is no number')
    decimals = len(old.partition(".")[2])
    return f"[{value:,.{decimals}f}{link}"


def main() -> None:
    """Update pages and pictures."""
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        try:
            written = {page: update(text), **draw_plots(text)}
        except NotInStep as error:
            raise SystemExit(f"{page}: {error}") from error
        for file, new in written.items():
            if not file.is_file() or file.read_text(encoding="utf8") != new:
                file.write_text(new, encoding="utf8")
                print(file)


if __name__ == "__main__":
    typer.run(main)
