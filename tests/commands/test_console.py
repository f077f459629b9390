"""What the command lines show, and how they end."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from labelwise.commands import convert_brat as convert_script
from labelwise.commands import merge as merge_script
from labelwise.commands.compare import _escape, compare_cli
from labelwise.commands.console import (
    msg,
    print_table,
    progress_bytes,
    user_errors,
    visible,
)
from labelwise.common.errors import InputError
from tests.conftest import ROOT, write_jsonl

# Clear the screen; a title; the same as a single character; back to the line's start; writing from right to left.
HOSTILE = "A\x1b[2J\x1b]0;t\x07\x9b2J\rB\u202eC\x7f\ud800"
SHOWN = r"A\x1b[2J\x1b]0;t\x07\x9b2J\rB\u202eC\x7f\ud800"
PYTHON = [sys.executable, "-X", "faulthandler"]
MAKE_DEMO = [*PYTHON, "-m", "scripts.make_demo", "OUT", "--docs", "2", "--labels", "1"]


@pytest.fixture(autouse=True)
def signals():
    """Commands get those that whoever started the tests, such as nohup, may have them ignore."""
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in defaults.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def run(command: list[str], **options) -> subprocess.CompletedProcess:
    return subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False, **options)


def script(body: str, *arguments: object) -> list[str]:
    """A command line whose work is the body of a function."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    imports = "import os, scripts\nfrom pathlib import Path\nfrom labelwise.commands.console import *"
    source = f"{imports}\ndef work():\n{lines}\nrun(work)"
    return [*PYTHON, "-c", f"import sys; given, sys.argv = sys.argv[1:], ['x']\n{source}", *map(str, arguments)]


class Terminal(io.StringIO):
    def __init__(self, is_one: bool):
        super().__init__()
        self.is_one = is_one

    def isatty(self) -> bool:
        return self.is_one


@pytest.mark.parametrize("is_one", [True, False])
def test_bars_show_rows_speed_and_time_left_on_terminals_alone(monkeypatch, is_one):
    terminal = Terminal(is_one)
    monkeypatch.setattr("sys.stderr", terminal)
    with progress_bytes("read", 100_000_000) as advance:
        for _ in range(3):
            time.sleep(0.11)
            advance(25_000_000, 1000)
    shown = terminal.getvalue()
    if is_one:
        assert "read:  75%" in shown
        assert "MB/s" in shown
        assert "3,000 rows" in shown
        assert "<00:0" in shown, "time left"
    else:
        assert shown == ""


@pytest.mark.parametrize(("utf8", "works"), [("", True), ("1", True), ("0", False)])
def test_a_folder_with_an_umlaut_in_the_posix_locale(tmp_path, utf8, works):
    """Python reads names as UTF-8 there unless it is told not to."""
    folder = tmp_path / "Büro"
    command = [str(folder / "Öl") if part == "OUT" else part for part in MAKE_DEMO]
    done = run(command, env=os.environ | {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": utf8})
    if works:
        assert done.returncode == 0, done.stderr
        assert len(list((folder / "Öl").rglob("*.ann"))) == 2
    else:
        assert done.returncode == 1
        assert done.stderr == (
            "Names of files would be read as ascii, and not as UTF-8: set PYTHONUTF8=1, or LC_ALL=C.UTF-8\n"
        )
        assert not folder.exists()


def test_a_command_whose_output_is_full_does_its_work_and_says_so(tmp_path):
    command = [str(tmp_path / "demo") if part == "OUT" else part for part in MAKE_DEMO]
    with Path("/dev/full").open("w") as full:
        done = run(command, stdout=full)
    assert done.returncode == 1
    assert done.stderr == (
        "Standard output: No space left on device; the command's work is done, but not all that it says is there\n"
    )
    assert len(list((tmp_path / "demo").rglob("*.ann"))) == 2


@pytest.mark.parametrize("nobody_reads", ["|true", ">&-"])
def test_a_command_whose_output_nobody_reads_does_its_work_and_says_so(tmp_path, nobody_reads):
    work = (
        "for n in range(9): print('x' * 99_999, flush=True); time.sleep(0.05)\nprint('done', file=open(given[0], 'w'))"
    )
    command = script("import time\n" + work, tmp_path / "done")
    if nobody_reads == "|true":
        read, write = os.pipe()
        os.close(read)
        done = run(command, stdout=write)
        os.close(write)
        error = "Broken pipe"
    else:
        done = run(["sh", "-c", 'exec "$@" >&-', "sh", *command])
        error = "it is closed"
    assert (tmp_path / "done").read_text() == "done\n"
    assert done.returncode == 1
    assert done.stderr == f"Standard output: {error}; the command's work is done, but not all that it says is there\n"


def test_a_command_that_fails_keeps_its_status_when_its_output_is_full():
    with Path("/dev/full").open("w") as full:
        done = run(script("print('x'); raise SystemExit(3)"), stdout=full)
    assert done.returncode == 3
    assert "the command failed, but not all" in done.stderr


def test_there_are_colours_on_a_terminal_alone(tmp_path):
    """Neither in this project's messages nor in spaCy's, unless somebody sees them; nor if NO_COLOR is set."""
    body = "from wasabi import Printer\nmsg.good('ours')\nPrinter().good('spaCy\\'s')\n"
    done = run(script(body), stdout=subprocess.PIPE)
    assert "ours" in done.stdout
    assert "\x1b" not in done.stdout
    for name, coloured in (("X", True), ("NO_COLOR", False)):
        main, other = os.openpty()
        run(script(body), stdout=other, env={**os.environ, name: "1", "TERM": "xterm"})
        os.close(other)
        assert (b"\x1b[" in os.read(main, 9999)) == coloured
        os.close(main)


@pytest.mark.parametrize("encoding", ["ascii", "utf8"])
def test_what_an_output_cannot_encode_is_printed_as_escapes(encoding):
    """Such as a label in Greek, or the name of a file that isn't UTF-8."""
    body = "with user_errors('\u2718 \u03b1'):\n    raise InputError(os.fsdecode(b'caf\\xe9.ann: bad'))"
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    done = run(script("print('\u03b1')\n" + body), stdout=subprocess.PIPE, env=environment)
    assert done.stderr == ""
    assert done.returncode == 1
    assert done.stdout.startswith("\\u03b1" if encoding == "ascii" else "\u03b1")
    assert "caf\\udce9.ann: bad" in done.stdout


@pytest.mark.parametrize("name", sorted(file.stem for file in (ROOT / "scripts").glob("*.py") if file.stem[0] != "_"))
def test_a_command_that_is_interrupted_while_it_is_loaded_ends_quietly(tmp_path, name):
    (tmp_path / "typer.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nraise OSError")
    done = run([*PYTHON, "-m", f"scripts.{name}"], env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_command_that_is_ended_leaves_nothing(tmp_path, number, status):
    body = (
        "import tempfile, time\n"
        "from labelwise.common.files import staged\n"
        "with user_errors('Nothing was done'), staged(Path(given[0]) / 'out') as file, tempfile.TemporaryDirectory():\n"
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
        process.send_signal(number)
        _, error = process.communicate(timeout=20)
    assert process.returncode == status
    assert error == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("merge", "datasets.yml corpus --metrics TAKEN"),
        ("train", f"{ROOT}/configs/cpu.cfg CORPUS model --curve TAKEN"),
        ("train", f"{ROOT}/configs/cpu.cfg CORPUS model --curve curve.tsv --resources TAKEN"),
        ("find_batch_size", f"{ROOT}/configs/cpu.cfg CORPUS TAKEN --gpu-id -1 --memory 2GB"),
        ("evaluate", "model CORPUS/test TAKEN"),
        ("evaluate", "model CORPUS/test metrics.json --details TAKEN"),
        ("evaluate", "model CORPUS/test metrics.json --speed TAKEN"),
        ("evaluate", "model CORPUS/test metrics.json --predictions TAKEN"),
        ("report", "TAKEN --pipeline cpu"),
    ],
)
def test_a_folder_where_a_command_would_write_a_file_is_an_error_before_it_begins(
    tmp_path, monkeypatch, demo_corpus, name, arguments
):
    write_jsonl(tmp_path / "a.jsonl", [{"text": "one"}])
    (tmp_path / "datasets.yml").write_text("- {name: a, path: a.jsonl, labels: [A]}")
    (tmp_path / "taken").mkdir()
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command()(getattr(import_module(f"labelwise.commands.{name}"), f"{name}_cli"))
    words = arguments.replace("TAKEN", "taken").replace("CORPUS", str(demo_corpus)).split()
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 1
    assert "taken: this is a folder, but a file is to be written there" in " ".join(result.output.split())
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("revisions", [[""], ["main", ""], [" "]])
def test_an_empty_revision_is_refused(revisions):
    """Such as a variable of the shell that isn't set: the workspace would be compared with itself."""
    app = typer.Typer()
    app.command()(compare_cli)
    result = CliRunner().invoke(app, revisions)
    assert result.exit_code == 1
    assert "a revision is empty" in " ".join(result.output.split())


def test_every_command_is_run_alike():
    for file in (ROOT / "labelwise" / "commands").glob("*.py"):
        assert "typer.run(" not in file.read_text(encoding="utf8") or file.name == "console.py"


def test_what_steers_a_terminal_is_shown_as_an_escape():
    assert visible(HOSTILE) == SHOWN
    harmless = "Zoë\t\U0001f469\u200d\U0001f52c שלום\n日本"
    assert visible(harmless) == harmless


@pytest.mark.parametrize("kind", ["good", "info", "warn", "fail"])
def test_no_message_steers_the_terminal(capsys, kind):
    getattr(msg, kind)(HOSTILE, HOSTILE)
    assert capsys.readouterr().out.count(SHOWN) == 2


def test_no_error_steers_the_terminal(capsys):
    with pytest.raises(typer.Exit), user_errors("Nothing"):
        raise InputError(HOSTILE)
    assert SHOWN in capsys.readouterr().out


def test_no_table_steers_the_terminal_and_a_cell_is_one_line(capsys):
    print_table([HOSTILE, "F"], [["B\nC\tD", 7], [HOSTILE, 7]])
    print_table(["F", HOSTILE], [["A", 7]])
    printed = capsys.readouterr().out
    assert printed.count(SHOWN) == 3
    assert r"B\nC\tD" in printed


@pytest.mark.parametrize(
    ("header", "row"),
    [
        (["Label", "F"], ["LABEL" * 40, "0.123"]),
        (["Label", *(f"no token boundary {n}" for n in range(14))], ["LABEL", *["1,234,567"] * 14]),
        (["Label", "Text"], ["a b c " * 30, "d e f " * 30]),
        (["Data set", "database", "tasks"], ["name", "postgresql://" + "host" * 40, "1"]),
    ],
)
def test_a_table_fits_a_terminal_and_loses_nothing(capsys, header, row):
    print_table(header, [row, ["END", *row[1:]]])
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    printed = Counter("".join(lines).replace(" ", "").replace("-", ""))
    assert printed >= Counter("".join([*header, *row, "END"]).replace(" ", ""))


def test_only_what_is_too_wide_is_wrapped(capsys):
    print_table(["Label", "F flat gold"], [["A" * 66, "0.123"]])
    head, _, row = capsys.readouterr().out.splitlines()[1:4]
    assert head == f"{'Label':66}   F flat gold"
    assert row == f"{'A' * 66}         0.123"


def test_no_table_of_a_pull_request_has_control_characters():
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", _escape(HOSTILE))


def test_what_annotators_wrote_does_not_steer_the_terminal(tmp_path, monkeypatch):
    """Labels, names of files and data sets, of the commands that read what came from elsewhere."""
    label = "L\x1b[2J\x9b\u202e"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "brat\x1b[2J").mkdir()
    for number in range(3):
        stem = tmp_path / "brat\x1b[2J" / f"{number}\x1b[2J"
        stem.with_suffix(".txt").write_text(f"big cat {number}")
        stem.with_suffix(".ann").write_text(f"T1\t{label} 0 7\tbig cat\nT2\t{label} 0 99\tbig\n", encoding="utf8")
    printed = ""
    for cli, arguments in (
        (convert_script.convert_brat_cli, ["brat\x1b[2J", "tasks"]),
        (convert_script.convert_brat_cli, ["brat\x1b[2J", "tasks", "--strict"]),
        (merge_script.merge_cli, ["tasks/datasets.yml", "corpus", "--workers", "1"]),
        (merge_script.merge_cli, ["tasks/no\x1b[2J.yml", "corpus"]),
    ):
        app = typer.Typer()
        app.command()(cli)
        printed += CliRunner().invoke(app, arguments).output
    printed = re.sub(r"\x1b\[[0-9;]*m", "", printed)  # the printer's own colours
    assert printed.count(visible(label)) >= 2
    assert r"no\x1b[2J.yml" in printed
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", printed)
