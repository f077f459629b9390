import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib import import_module

import pytest

from labelwise.base.console import msg, print_table, progress
from labelwise.base.text import describe_seconds
from labelwise.corpus.ledger import Ledger
from labelwise.datasets.declare import declare
from labelwise.merge.print_tables import print_ledger
from tests.conftest import ROOT, call, run_command, write_jsonl


@pytest.fixture(autouse=True)
def signals():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def script(body: str, *arguments: object) -> list[str]:
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    imports = "import os, scripts\nfrom pathlib import Path\nfrom labelwise.base.console import *"
    source = f"{imports}\ndef work():\n{lines}\nrun(work)"
    return [sys.executable, "-c", f"import sys; given, sys.argv = sys.argv[1:], ['x']\n{source}", *map(str, arguments)]


@pytest.mark.parametrize(("is_one", "patience", "shown"), [(True, 0.2, True), (True, 9.0, False), (False, 0.2, False)])
def test_progress_bars_show_the_time_left_on_terminals_after_a_while(monkeypatch, is_one, patience, shown):
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: is_one, raising=False)
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr("labelwise.base.console.MIN_BAR_SECONDS", patience)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    assert [*progress((time.sleep(0.15) or n for n in range(4)), "read", 5)] == [0, 1, 2, 3]
    output = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", terminal.getvalue())
    if shown:
        assert re.search(r"read #.* 4/5, \d+ seconds left", output), "in ASCII, as a StringIO has no encoding"
        assert re.search(r"\r +\r$", output), "it is taken off"
    else:
        assert terminal.getvalue() == ""


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (0.1, "5 seconds"),
        (44, "45 seconds"),
        (89, "90 seconds"),
        (100, "2 minutes"),
        (5000, "83 minutes"),
        (6000, "2 hours"),
    ],
)
def test_a_time_is_as_exact_as_somebody_who_waits_needs_it(seconds, message):
    assert describe_seconds(seconds) == message


@pytest.mark.parametrize("is_one", [True, False])
def test_messages_have_a_colour_on_terminals_alone_and_leave_paths_whole(monkeypatch, is_one):
    out, path = io.StringIO(), "/home/somebody/" + "x" * 90
    monkeypatch.setattr(out, "isatty", lambda: is_one, raising=False)
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("NO_COLOR", raising=False)
    msg.warn(f"[bold]{'word ' * 20}", f"see {path}")
    assert ("\x1b[" in out.getvalue()) == is_one
    first, second, *more = re.sub(r"\x1b\[\d*m", "", out.getvalue()).splitlines()
    assert first.startswith("⚠ [bold]word word")
    assert max(len(first), len(second)) <= 80
    assert more == ["see", path]


@pytest.mark.parametrize("encoding", ["ascii", "utf8"])
def test_what_an_output_cannot_encode_is_printed_as_escapes(encoding):
    """Such as a Greek label, or a file name that isn't UTF-8."""
    body = "with user_errors('\u2718 \u03b1'):\n    raise InputError(os.fsdecode(b'caf\\xe9.ann: bad'))"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = run_command(script("print('\u03b1')\n" + body), ROOT, environment, status=1)
    assert done.stderr == ""
    assert done.stdout.startswith("\\u03b1" if encoding == "ascii" else "\u03b1")
    assert "caf\\udce9.ann: bad" in done.stdout


def test_every_command_is_run_alike():
    for file in (ROOT / "scripts").glob("[a-z]*.py"):
        assert file.read_text(encoding="utf8").endswith(f"    run({file.stem}_cli)\n"), file


def test_a_command_runs_where_standard_output_is_no_file_as_in_a_notebook(tmp_path):
    body = "import io, sys\nshown = sys.stdout = io.StringIO()\nfrom scripts.merge import *"
    ends = "try:\n    run(merge_cli)\nfinally:\n    print(shown.getvalue(), file=sys.__stdout__)"
    command = [sys.executable, "-c", f"{body}\n{ends}", "none.yml", tmp_path / "out"]
    done = run_command(command, ROOT, os.environ, status=1)
    assert "none.yml" in done.stdout
    assert done.stderr == ""


@pytest.mark.guarantee("interrupt")
def test_a_command_that_is_interrupted_leaves_nothing(tmp_path):
    body = (
        "import tempfile, time\n"
        "from labelwise.base.files import atomic\n"
        "out = Path(given[0]) / 'out'\n"
        "with user_errors('Nothing was done'), atomic(out) as [file], tempfile.TemporaryDirectory():\n"
        "    file.write_text('half')\n"
        "    print('begun', flush=True)\n"
        "    time.sleep(30)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = script(body, tmp_path)
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        assert process.stdout.readline() == "begun\n"
        assert len(list(tmp_path.iterdir())) == 3, "a file, its lock, and a folder"
        process.send_signal(signal.SIGINT)
        printed, error = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Interrupted; existing outputs are unchanged" in " ".join(printed.split())
    assert error == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["convert_brat", "evaluate"])
def test_a_command_that_is_interrupted_while_it_imports_says_so_in_a_line(tmp_path, name):
    for folder in ("labelwise", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "typer.py").write_text("import signal\nsignal.raise_signal(signal.SIGINT)")  # imported first
    done = run_command([sys.executable, "-m", f"scripts.{name}", "cpu", "out"], tmp_path, os.environ, status=130)
    assert (done.stdout, done.stderr) == ("", "✘ Interrupted\n")
    assert not (tmp_path / "out").exists()


def test_a_command_deletes_bytecode_in_the_folders_that_stages_depend_on(tmp_path):
    for name in ("labelwise", "scripts"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    folders = [tmp_path / "labelwise" / name / "__pycache__" for name in ("demo", "merge/rules")]
    for code, remains in (("import labelwise.demo, labelwise.merge.rules", True), ("import scripts", False)):
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
        assert [folder.exists() for folder in folders] == [remains, remains]


@pytest.mark.guarantee("early")
@pytest.mark.parametrize(
    ("name", "arguments", "taken"),
    [
        ("merge", "datasets.yml corpus --metrics taken", "taken"),
        ("train", "cpu --corpus CORPUS", "plots/cpu.tsv"),
        ("evaluate", "cpu --split CORPUS/test", "metrics/cpu.json"),
        ("evaluate", "cpu --split CORPUS/test", "training/cpu/pairs.parquet"),
        ("evaluate", "cpu --split CORPUS/test --predictions taken", "taken"),
    ],
)
def test_a_folder_where_a_command_would_write_a_file_is_an_error_before_it_begins(
    tmp_path, monkeypatch, demo_corpus, name, arguments, taken
):
    write_jsonl(tmp_path / "a.jsonl", [{"text": "one"}])
    (tmp_path / "datasets.yml").write_text("- {name: a, path: a.jsonl, labels: [A]}")
    shutil.copytree(ROOT / "configs", tmp_path / "configs")
    (tmp_path / taken).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    words = arguments.replace("CORPUS", str(demo_corpus)).split()
    printed = call(getattr(import_module(f"scripts.{name}"), f"{name}_cli"), *words, status=1)
    assert f"{taken}: this is a folder, but a file is to be written there" in " ".join(printed.split())
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (["Label", "F"], ["LABEL" * 40, "0.123"]),
        (["Label", *(f"misaligned {n}" for n in range(7))], ["LABEL", *["1,234,567"] * 7]),
        (["Label", "Text"], ["a b c " * 30, "d e f " * 30]),
    ],
)
def test_a_table_fits_a_terminal_and_loses_nothing(capsys, header, row):
    print_table(header, [row, ["END", *row[1:]]])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    printed = Counter("".join(lines).replace(" ", "").replace("─", ""))
    assert printed >= Counter("".join([*header, *row, "END"]).replace(" ", ""))


def test_the_name_of_a_data_set_is_not_broken(capsys, tmp_path):
    name, counts = "customer-reviews_2024-q3_ner-correct-batch-07", Counter(rows=12345, spans=12345, entities=12345)
    counts |= Counter(texts=12345, accepted=12345, rejected=12345, lost=12345)
    print_ledger(Ledger(datasets={name: counts, "b": counts}), "merge.json")
    assert capsys.readouterr().out.count(name) == 1
    write_jsonl(tmp_path / f"{name}.jsonl", [{"text": "Ann", "spans": [{"start": 0, "end": 3, "label": "A" * 45}]}])
    declare(tmp_path)
    assert name in capsys.readouterr().out.partition("Check")[0]


def test_a_wide_table_keeps_its_figures_on_a_narrow_terminal(capsys):
    header = [
        "Dataset",
        *["rows", "texts", "accepted", "superseded", "ignored", "rejected", "unused", "spans", "entities", "dropped"],
    ]
    for name in ("brat-dev-2", "fashion_brands_training"):
        print_table(header, [[name, *["1,234,567"] * 10]], whole="Dataset")
        assert capsys.readouterr().out.count("1,234,567") == 10
    print_table(header, [["fashion_brands_training", *["451"] * 9, "12"]], whole="Dataset")
    lines = capsys.readouterr().out.splitlines()
    assert (lines[1].split(), lines[-1].split()[-1]) == (header, "12"), "too wide, so no word is broken for the width"
