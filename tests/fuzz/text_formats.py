"""Fuzzing of CoNLL, WebAnno, and rows of tokens and tags, judged by second counts of what is in a file.

Whatever is in a file, each sentence, row and annotation must come out as a task, a span, or a problem.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import msgspec

from labelwise.sources.items import MISCOUNTED, Item
from tests.fuzz.mutate import Bytes
from tests.fuzz.promises import balance, check, folder, read_file
from tests.sources import conll_count, webanno_count

LINE_END = re.compile(r"\r\r\n|\r\n|\r|\n")
HEADER = (
    "#FORMAT=WebAnno TSV 3.3\n"
    "#T_SP=de.tudarmstadt.ukp.dkpro.core.api.ner.type.NamedEntity|identifier|value\n"
    "#T_SP=custom.Drug|kind\n\n"
)
SURROGATES = "[\ud800-\udfff]"
KEYS = {"id", "tokens", "ner_tags"}
VALUES = (1, 2)  # the columns of features that the header gives labels to
WORDS = (
    "B-A",
    "I-B",
    "S-A",
    "-DOCSTART- O",
    "# global.columns = FORM NER",
    "#Text=",
    "\\[",
    "[1]",
    "|",
    "\r",
    "\t",
    "_",
)


def fuzz_conll(data: bytes) -> int:
    """CoNLL: each sentence is an item, with the words, and the spans, that its lines have."""
    items = list(read_file(data, "a.conll"))
    lines = [line.removeprefix("\ufeff") for line in LINE_END.split(data.decode("utf8", "surrogateescape"))]
    named = any(re.match(r"#\s*global\.columns| *1[\t ]", line) for line in lines)  # or numbered
    check(not (lost := conll_count.count_lost(folder() / "a.conll", items, None if named else -1)), lost, items)
    for blank, block in groupby(enumerate(lines, 1), lambda line: not line[1].strip(" \t\r\n\f\v")):
        numbers, content = zip(*block, strict=True)
        certain = [not line.startswith(("#", "-DOCSTART-")) for line in content]
        if blank or not any(certain):
            continue
        found = [item for item in items if numbers[0] <= item.line <= numbers[-1]]
        check(len(found) == 1, content, found)
        if not named and all(kept or _is_token(line, content) for kept, line in zip(certain, content, strict=True)):
            _check_sentence(content, found[0])
    return balance(items).rows_read


def _is_token(line: str, content: Sequence[str]) -> bool:
    """Tell whether a line with `#` is a token beyond doubt: of tabs and a tag, as all lines are."""
    tabs = {other.count("\t") for other in content}
    return line[0] == "#" and len(tabs) == 1 and 0 not in tabs and re.search("\t[BUS]-[A-Z]+$", line) is not None


def _check_sentence(content: Sequence[str], item: Item) -> None:
    rows = [line.split("\t") if "\t" in line else re.split("[ \t]+", line.strip(" ")) for line in content]
    rows = [row[:-1] if len(row) > 2 and row[-1] == "" else row for row in rows]
    words, tags = zip(*((row[0].strip(), row[-1].strip()) for row in rows), strict=True)
    good = len({len(row) for row in rows}) == 1 and len(rows[0]) > 1 and " ".join(words).strip() != ""
    check(bool(item.task) == (good and not re.search(SURROGATES, "".join(content))), content, item)
    if item.task:
        check(item.task.text == " ".join(words), content, item)
        check(len(item.task.spans or ()) == count_chunks(tags), content, item)


def count_chunks(tags: Sequence[str]) -> int:
    """Count the spans that begin, as conlleval tells it from each two successive tags."""
    parts = [("I", ""), *(_part(tag) for tag in tags)]
    return sum(
        bool(label) and (label != before or prefix in "BUS" or ended in "LEUS")
        for (ended, before), (prefix, label) in pairwise(parts)
    )


def _part(tag: str) -> tuple[str, str]:
    found = re.fullmatch("([BIUSLE])-(.+)", tag, re.DOTALL)
    return (found[1], found[2]) if found else ("I", "" if tag in ("O", "_", "-") else tag)


def fuzz_webanno(data: bytes) -> int:
    """WebAnno: each sentence is in the text, and each annotation is a span or a problem, or the file is a problem."""
    items = list(read_file(data, "a.tsv"))
    if not data.removeprefix(b"\xef\xbb\xbf").startswith(b"#FORMAT=WebAnno TSV"):
        return balance(items).rows_read  # CoNLL, which has a target of its own
    text = data.decode("utf8", "replace").removeprefix("\ufeff")
    lines = re.split("\r\n|\r|\n", text)
    task = items[0].task
    problems = Counter(item.problem.partition(":")[0] for item in items)
    check(len(items) == 1 or task is not None, items)
    if task is not None:
        ours = "\n".join(lines).startswith(HEADER) and "#T_" not in "\n".join(lines)[len(HEADER) :]
        lost = webanno_count.count_lost(folder() / "a.tsv", items, VALUES if ours else ())
        check(not lost["sentences"] or problems[MISCOUNTED] == 1, lost, items)
        check(not lost["annotations"] and not lost["characters"], lost, items)
        check(set(problems) <= {"", "invalid", MISCOUNTED}, items)
        if ours:
            labels = _labels(lines)
            check(labels <= Counter(span.label for span in task.spans or ()), labels, items)
        last = max((n for n, line in enumerate(lines) if line.startswith("#Text=")), default=0)
        whole = any(re.match(r"\d+-\d", line) for line in lines[last:])
        check(not problems[MISCOUNTED] or not whole, items)
    return balance(items).rows_read


def _labels(lines: Sequence[str]) -> Counter[str]:
    """Count labels that need no escapes and stand alone."""
    labels: Counter[str] = Counter()
    for line in lines:
        cells = line.split("\t")[3:]
        for column in VALUES if re.match("[0-9]+-[0-9]+", line) and not line.startswith("#") else ():
            cell = cells[column] if column < len(cells) else "_"
            for value in re.split(r"\|", cell.replace("\\\\", "x").replace("\\|", "x")) if cell != "_" else ():
                labels[value] += bool(re.fullmatch("[A-Za-z]+", value))
    return +labels


def fuzz_tags(data: bytes) -> int:
    """JSONL of tokens and tags: each row that has both is a task, with the spans of its tags."""
    items = list(read_file(data, "a.jsonl"))
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    rows = [row for line in lines for row in _decoded(line)]
    good = [row for row in rows if _is_tagged(row)]
    spans = [count_chunks(row["ner_tags"]) for row in good]
    tasks = [item.task for item in items if item.task]
    if items:  # else the file was refused, such as one that looks like UTF-16
        check(len(tasks) >= len(good), items)
        check(sum(len(task.spans or ()) for task in tasks) >= sum(spans), items)
    check(not any(item.problem.startswith(MISCOUNTED) for item in items), items)
    return balance(items).rows_read


def _decoded(line: bytes) -> Iterator[Any]:
    try:
        yield json.loads(line.decode())
    except (ValueError, RecursionError):
        return


def _is_tagged(row: Any) -> bool:
    """Tell whether a row is as it should be, so that it must be read."""
    if not isinstance(row, dict) or not row.keys() <= KEYS or not isinstance(row.get("id", ""), str):
        return False
    tokens, tags = row.get("tokens"), row.get("ner_tags")
    if not isinstance(tokens, list) or not isinstance(tags, list) or len(tokens) != len(tags):
        return False
    if not all(isinstance(value, str) for value in (*tokens, *tags)) or any(tag.isdigit() for tag in tags):
        return False
    return not re.search(SURROGATES, "".join((row.get("id", ""), *tokens, *tags))) and " ".join(tokens).strip() != ""


def fuzz_parquet(data: bytes) -> int:
    """Parquet: any rows and names, each row an item; or, after another first byte, the bytes of a file."""
    if data[:1] > b"\x7f":
        return balance(read_file(data[1:], "a.parquet")).rows_read
    import pyarrow
    from pyarrow import parquet

    try:
        rows, names = msgspec.msgpack.decode(data[1:])
        info = json.dumps({"info": {"features": {"ner_tags": {"feature": {"names": names}}}}})
        rows = [row[:2] for row in rows if len(row) > 1]
        table = pyarrow.Table.from_pylist([{"tokens": tokens, "ner_tags": tags} for tokens, tags in rows])
        parquet.write_table(table.replace_schema_metadata({"huggingface": info}), folder() / "made.parquet")
    except (
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
        AttributeError,
        msgspec.MsgspecError,
        pyarrow.ArrowException,
    ):
        return 0  # not such a table
    items = list(read_file((folder() / "made.parquet").read_bytes(), "a.parquet"))
    check(len(items) == len(rows) or not items, items, rows)
    check(not any(item.problem.startswith(MISCOUNTED) for item in items), items)
    texts = pyarrow.list_(pyarrow.string())  # else strings come back as bytes
    for item, (tokens, tags) in zip(items, rows if table.schema.types == [texts, texts] else (), strict=False):
        if _is_tagged({"tokens": tokens, "ner_tags": tags}):
            check(item.task is not None and len(item.task.spans or ()) == count_chunks(tags), item, tags)
    return balance(items).rows_read


def mutate_text(data: bytes, rng: random.Random, mutate: Bytes) -> bytes:
    """Change a line of a text file: lose it, repeat or move it, exchange a column, or put one of WORDS somewhere."""
    lines = data.split(b"\n")
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(7):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, lines[other])
        case 2:
            lines[at] = b""
        case 3:
            one, two = lines[at].split(b"\t"), lines[other].split(b"\t")
            one[rng.randrange(len(one))] = rng.choice(two)
            lines[at] = b"\t".join(one)
        case 4:
            return data.replace(b"\n", rng.choice([b"\r", b"\r\n", b"\r\r\n"]))
        case 5:
            place = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:place] + rng.choice(WORDS).encode() + lines[at][place + rng.randrange(4) :]
        case _:
            lines[at] = mutate(lines[at])
    return b"\n".join(lines)


CONLL = [
    "-DOCSTART- -X- -X- O\n\nEU NNP I-NP B-A\nrejects VB O O\nGerman JJ B-NP B-B\ncalls NN I-NP I-B\n\nAnn NNP X S-A\n",
    "# global.columns = ID FORM MISC:NER LEMMA\n# sent_id = 1\n1\tNew York\tB-A\tnew\n2\t#\tO\t#\n\n1\tin\tO\tin\n",
    "1\tAnn\tB-A\t-\t-\n2\tran\tO\t-\t-\n\n# text = B-12 x\n1\tBob\tB-B\t-\t-\n2\t\U0001f600\tO\t-\t-\n",
    "#win=now\tB-A\nis\tO\n\n#\tO\n#end document\tB-B\n# x\tU-A\n\nb\tL-A\nc\tI-A\n\n\nd\t_\n",
    "# LABEL\nfoo A\nbar A\n\n# newdoc id = 3\nbaz B\n\n#begin document (x); part 000\nqux O\n#end document\n",
    "Ann _ _ B-A\n# _ _ O\n\n# id 5b4a domain=train\nBob _ _ I-A\nand _ _ I-B\n10\u00a0000 _ _ E-B\n",
]
WEBANNO = [
    HEADER + "#Text=Ann moved to New York .\n1-1\t0-3\tAnn\t_\tPER\t_\t\n1-2\t4-9\tmoved\t_\t_\t_\t\n"
    "1-3\t10-12\tto\t_\t_\tX[3]|Y[4]\t\n1-4\t13-16\tNew\t_\tLOC[1]\tX[3]\t\n1-5\t17-21\tYork\t_\tLOC[1]\t_\t\n"
    "1-6\t22-23\t.\t_\t_\t*\t\n\n#Text=So did Bob\n2-1\t26-28\tSo\t_\t_\t_\t\n2-2\t29-32\tdid\t_\t_\tA\\[1\\]|B\t\n"
    "2-2.1\t30-31\ti\t_\t_\tC\t\n2-3\t33-36\tBob\t*\tPER\t_\t\n",
    HEADER + "#Text=\U0001f600 a\\tb\\\\\n#Text=c\n1-1\t0-2\t\U0001f600\t_\tE\t_\t\n"
    "1-2\t3-7\ta\\tb\\\\\t_\t_\tD\t\n1-3\t8-9\tc\t_\t_\tD\t\n",
    "#FORMAT=WebAnno TSV 3.2\n#T_SP=custom.Bare|\n#T_RL=custom.Rel|type|BT_custom.Bare\n#T_CH=x.Link|a|b\n\n\n"
    "#Text=Ann ran\n1-1\t0-3\tAnn\t*[1]\t_\t_\t*->1-1\t_\t\n1-2\t4-7\tran\t*[1]|*[2]\tr\t1-1[0_1]\t_\t_\t\n",
]
TAGGED = [
    {"id": "0", "tokens": ["EU", "rejects", "German", "call"], "ner_tags": ["B-A", "O", "B-B", "I-B"]},
    {"id": "1", "tokens": ["Peter", "Blackburn"], "ner_tags": ["U-A", "A"]},
    {"tokens": ["a", "", "\U0001f600"], "ner_tags": ["E-C", "I-C", "S-C"]},
    {"tokens": [], "ner_tags": []},
]


def conlls() -> list[bytes]:
    """Files of each layout, and with each end of lines."""
    return [content.encode() for content in CONLL] + [content.replace("\n", "\r").encode() for content in CONLL[:2]]


def webannos() -> list[bytes]:
    """Documents with numbers, parts of tokens, escapes and layers of each kind."""
    return [content.encode() for content in WEBANNO] + [WEBANNO[0].replace("\n", "\r\n").encode()]


def tags() -> list[bytes]:
    """Rows of tokens and tags."""
    lines = [json.dumps(row).encode() for row in TAGGED]
    return [b"\n".join(lines), *(b"\n".join(pair) + b"\n" for pair in pairwise(lines[:3]))]


def parquets() -> list[bytes]:
    """Rows of a table, with the names of tags, after a byte; and the bytes of a file, after another."""
    import pyarrow
    from pyarrow import parquet

    rows = [[row["tokens"], row["ner_tags"]] for row in TAGGED]
    numbers = [[["a", "b"], [0, 1]], [["c"], [2]], [[], []], [["d"], [9]]]
    parquet.write_table(pyarrow.Table.from_pylist(TAGGED[:2]), folder() / "seed.parquet")
    packed = [
        msgspec.msgpack.encode(table)
        for table in ([rows, None], [numbers, ["O", "B-A", "I-A"]], [rows[:1], {"0": "O"}])
    ]
    return [*(b"\0" + table for table in packed), b"\xff" + (folder() / "seed.parquet").read_bytes()]
