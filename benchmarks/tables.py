"""Put the numbers of benchmarks/results into the pages: tables, and numbers in a sentence.

    python -m benchmarks.tables

A page has a table between `<!-- result: NAME -->` and `<!-- end -->`: all rows of NAME.json, and the command that made
them. A number in a sentence is a link to its file, whose title names the first cells of the row, and the column:
`[2.3](benchmarks/results/training_speed.json "litbank / 2,221 / per-label, 1 process / of spacy train")`. It keeps
its decimals.

Between `<!-- section: NAME -->` and `<!-- end -->` a page has the keys of a section of project.yml, with comments.
"""

import re
from pathlib import Path

import msgspec
import typer

from benchmarks.measure import RESULTS, Result, as_table, as_text

PAGES = (Path("README.md"), *sorted(Path("docs").glob("*.md")), Path("benchmarks/README.md"))
BLOCK = re.compile(r"(<!-- result: (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)
SECTION = re.compile(r"(<!-- section: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
KEY = re.compile(r"(?m)^  (\w+): (.*?)(?: +# (.*))?$")
NUMBER = re.compile(r'\[([^\]]+)(\]\(\S*results/(\w+)\.json "([^"]+)"\))')


class NotInStep(Exception):
    """A page names a result, a row or a column that isn't there."""


def read_result(name: str) -> Result:
    """Read a result.

    RAISES (NotInStep): there is none of that name.
    """
    path = RESULTS / f"{name}.json"
    if not path.is_file():
        raise NotInStep(f"{path} isn't there: name another result, or run the benchmark that writes it")
    return msgspec.json.decode(path.read_bytes(), type=Result)


def update(page: str) -> str:
    """Return a page with the numbers that the results have.

    RAISES (NotInStep): it names something that isn't there.
    """
    return NUMBER.sub(write_number, BLOCK.sub(write_block, SECTION.sub(write_section, page)))


def write_section(found: re.Match[str]) -> str:
    """Write the keys of a section of project.yml as a table: name, value, and the comment behind it."""
    begin, name, end = found.groups()
    section = Path("project.yml").read_text(encoding="utf8").partition(f"\n{name}:\n")[2]
    section = re.split(r"(?m)^(?=\S)", section, maxsplit=1)[0]
    rows = [(key, value, said.replace("|", "\\|")) for key, value, said in KEY.findall(section)]
    lines = [f"| `{key}` | `{value}` | {said} |" for key, value, said in rows]
    return "\n".join([f"{begin}| key | in the project | meaning |", "|---|---|---|", *lines, end])


def write_block(found: re.Match[str]) -> str:
    """Write what stands between two markers."""
    begin, name, end = found.groups()
    result = read_result(name)
    content = "\n".join(["```text", *result.printed, "```"]) if result.printed else as_table(result)
    source = f"`{result.command}`; {result.date or 'date unknown'}, commit {result.commit or 'unknown'}. {result.note}"
    return f"{begin}{content}\n\n{source.strip()}\n{end}"


def write_number(found: re.Match[str]) -> str:
    """Write a number that a link names: as many decimals as it had, of the median if there are three."""
    old, link, name, title = found.groups()
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
    """Write the pages that aren't in step."""
    for page in PAGES:
        text = page.read_text(encoding="utf8")
        try:
            new = update(text)
        except NotInStep as error:
            raise SystemExit(f"{page}: {error}") from error
        if new != text:
            page.write_text(new, encoding="utf8")
            print(page)


if __name__ == "__main__":
    typer.run(main)
