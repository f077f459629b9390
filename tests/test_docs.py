"""Every code block of README and docs does what its page says, as it is written there, or says why no test runs it.

A block that is run stands in a call of `block` in this file, with its page and its first line.
"""

import json
import re
import shutil
import sqlite3
import subprocess
import zipfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
import yaml

import labelwise
from labelwise.corpus.tokenizer import packages_of, read_rules
from labelwise.demo.corpus import DemoDoc, add_noise, make_doc
from labelwise.demo.write import write_docs
from labelwise.export.brat import standoff
from labelwise.export.source import read_corpus
from tests.clone import IDENTITY as COMMITTER
from tests.clone import Clone as Copy
from tests.clone import replace_once as edit
from tests.conftest import ROOT, write_jsonl
from tests.project.installed import PROJECT, Installed, build, install
from tests.sources.servers import PASSWORD, postgresql

LABELS = ("PERSON", "PLACE")
PAGES = ("README.md", "CONTRIBUTING.md", "assets/README.md", "benchmarks/README.md", "docs")
# By page and first line, why no test runs a block as it is written.
NOT_RUN = {
    ("README.md", "make run"): "sets up environments; make run is weasel run all in one",
    ("docs/index.md", "make run"): "the same",
    ("CONTRIBUTING.md", "make test"): "these are what runs this test",
    ("docs/accounting.md", "weasel assets --extra"): "fetches public corpora; merge/test_public.py merges them",
    (
        "docs/deploy.md",
        "pip install --find-links",
    ): "would change this environment; they are put on the path instead",
    ("docs/deploy.md", "import spacy\nfrom fastapi"): "needs fastapi, which is none of the project's packages",
    ("docs/deploy.md", "OPENBLAS_NUM_THREADS=1"): "starts the service above",
    ("docs/deploy.md", "import spacy\nimport torch"): "needs a pipeline with a transformer, and torch",
    ("docs/deploy.md", "pip install dvc"): "example.com; test_end_to_end.py gets a wheel and a pipeline from a folder",
    ("docs/deploy.md", ".venv/bin/pip install spacy-huggingface-hub"): "needs an account on the hub",
    ("docs/experiments.md", "dvc exp run --queue -S 'project.yml:vars.seed"): "five trainings in the background; "
    "test_end_to_end.py runs one",
    ("docs/experiments.md", "dvc exp run --queue -S 'project.yml:vars.limit"): "needs more texts; test_end_to_end.py "
    "runs it on few",
    ("docs/install.md", "python3 -m venv"): "would change this environment; the wheel is installed beside it",
    ("docs/cluster.md", "dask scheduler"): "needs machines; test_parallel_stages.py has a cluster of processes",
    ("docs/cluster.md", "from dask_jobqueue"): "needs SLURM",
    ("docs/cluster.md", "from dask_kubernetes"): "needs Kubernetes",
    ("docs/evaluation.md", "SELECT cause"): "needs DuckDB; evaluate/test_tables.py has the columns",
    ("docs/training.md", "torchrun"): "needs two machines; train/test_ranks.py runs torchrun on one",
    ("docs/training.md", 'code="--code'): "trains for 1,500 steps; train/test_spacy_commands.py runs each with fewer",
    ("docs/training.md", "[nlp]"): "train/test_spacy_commands.py assembles it",
    ("docs/training.md", "make gpu"): "needs a GPU",
}


def code_blocks() -> dict[tuple[str, str], tuple[str, str]]:
    """Language and content of all code blocks, by page and beginning."""
    files = [file for page in PAGES for file in ([ROOT / page] if page.endswith(".md") else (ROOT / page).glob("*.md"))]
    found = {}
    for file in files:
        text = file.read_text(encoding="utf8")
        for indent, language, content in re.findall(r"(?m)^( *)```(\w*)\n((?:.*\n)*?) *```", text):
            lines = [line.removeprefix(indent) for line in content.splitlines()]
            found[file.relative_to(ROOT).as_posix(), "\n".join(lines)] = (language, "\n".join(lines) + "\n")
    return found


BLOCKS = code_blocks()


def block(page: str, beginning: str, **instead: str) -> str:
    """The block of a page that begins so, with names that stand for something replaced."""
    (_, content), *_ = [BLOCKS[name] for name in BLOCKS if name[0] == page and name[1].startswith(beginning)]
    for name, value in instead.items():
        assert name in content
        content = content.replace(name, value)
    return content


def run_block(project: Copy, content: str) -> str:
    """Run commands as somebody would who pastes them into a terminal in the project's folder."""
    return project.run("bash", "-euc", content)


def test_every_block_is_run_or_says_why_not():
    whole = {f"docs/{page}" for page in re.findall(r'blocks\("(.+?)"\)', Path(__file__).read_text(encoding="utf8"))}
    calls = re.findall(r'[^_]block\(\s*"([^"]+)",\s*[\'"](.+?)[\'"][,)]', Path(__file__).read_text(encoding="utf8"))
    named = [*((page, beginning.encode().decode("unicode_escape")) for page, beginning in calls), *NOT_RUN]
    for page, beginning in named:
        assert [name for name in BLOCKS if name[0] == page and name[1].startswith(beginning)], (page, beginning)
    for (page, content), (language, _) in BLOCKS.items():
        assert language, f"{page}: a block without a language: text for what is printed"
        matches = [name for name in named if name[0] == page and content.startswith(name[1])]
        assert language == "text" or matches or page in whole, f"{page}: no test runs {content!r}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"(?m)^#+ (.*)", page.read_text(encoding="utf8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [page for page in (*PAGES, "CHANGELOG.md") if page.endswith(".md")])
def test_a_link_leads_to_a_file_and_a_heading(page):
    """Of the pages that aren't in the site: `make docs` checks those of docs."""
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", (ROOT / page).read_text(encoding="utf8"))
    for path, anchor in links:
        file = (ROOT / page).parent / path if path else ROOT / page
        assert file.exists(), path
        assert not anchor or anchor in anchors(file), f"{path}#{anchor}"


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Copy:
    """A copy of the project with a small brat corpus of two labels, some of whose tags are wrong; all was run."""
    copy = Copy(tmp_path_factory.mktemp("project"))
    for name, value in {"folds": "2", "steps": "10"}.items():
        copy.set(name, value)
    write_docs((noisy(made(number)) for number in range(24)), LABELS, copy.root / "assets/brat/noisy", "brat")
    copy.run("weasel", "run", "all")
    return copy


def made(number: int, labels: tuple[str, ...] = LABELS) -> DemoDoc:
    return make_doc(number, labels=labels, words=40)


def noisy(doc: DemoDoc) -> DemoDoc:
    return add_noise(doc, 0.1, labels=LABELS)


def blocks(page: str) -> list[list[list[str]]]:
    """The commands of each block of a page."""
    text = (ROOT / "docs" / page).read_text(encoding="utf8")
    found = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    return [[line.partition("#")[0].split() for line in part.splitlines()] for part in found]


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf8").splitlines()]


def write_tasks(path: Path, label: str, numbers: Sequence[int]) -> None:
    """Tasks of one label, as Prodigy exports them."""
    docs = [made(number, (label,)) for number in numbers]
    spans = [[{"start": start, "end": end, "label": label} for start, end, _ in doc.spans] for doc in docs]
    rows = zip(docs, spans, strict=True)
    write_jsonl(path, [{"text": doc.text, "spans": found, "_view_id": "ner_manual"} for doc, found in rows])


def write_database(path: Path, name: str, rows: Sequence[str]) -> None:
    """A database such as Prodigy's, with one data set."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(
            "create table dataset (id integer primary key, name varchar unique, created integer, meta blob, "
            "session integer); create table example (id integer primary key, input_hash bigint, task_hash bigint, "
            "content blob); create table link (id integer primary key, example_id integer, dataset_id integer);"
        )
        connection.execute("insert into dataset values (1, ?, 0, '{}', 0)", (name,))
        connection.executemany("insert into example (content) values (?)", [(row.encode(),) for row in rows])
        connection.execute("insert into link (example_id, dataset_id) select id, 1 from example")


def write_exports(folder: Path) -> None:
    """What the pages declare: person.jsonl, and the data set place in prodigy.db."""
    write_tasks(folder / "person.jsonl", "PERSON", range(16))
    write_tasks(folder / "place.jsonl", "PLACE", range(8, 24))
    write_database(folder / "prodigy.db", "place", (folder / "place.jsonl").read_text(encoding="utf8").splitlines())
    (folder / "place.jsonl").unlink()


def merged(root: Path) -> dict:
    return json.loads((root / "metrics/merge.json").read_text(encoding="utf8"))


@pytest.mark.parametrize("until", ["merge", pytest.param("report", marks=pytest.mark.long)])
def test_exports_and_a_database_go_the_whole_way_without_a_declaration(tmp_path, until):
    """The README: "put your database, or what you exported, into assets/prodigy/, and run weasel run all"."""
    copy = Copy(tmp_path)
    if until == "merge":
        project = (tmp_path / "project.yml").read_text(encoding="utf8")
        project = project.replace("  - train-cpu\n  - evaluate-cpu\n  - check\n  - report\n", "")
        (tmp_path / "project.yml").write_text(project, encoding="utf8")
    write_exports(tmp_path / "assets/prodigy")
    printed = copy.run("weasel", "run", "all")
    assert "assets/prodigy has data sets: nothing to convert" in " ".join(printed.split())
    found = yaml.safe_load((tmp_path / "assets/prodigy/datasets.yml").read_text(encoding="utf8"))
    declared = yaml.safe_load(block("README.md", "- name: person"))
    assert {(one["name"], *one["labels"]) for one in found} == {(one["name"], *one["labels"]) for one in declared}
    assert merged(tmp_path)["datasets"] == {"person": 16, "place": 16}
    assert {label: n["complete"] for label, n in merged(tmp_path)["labels"].items()} == {"PERSON": 16, "PLACE": 16}
    assert (tmp_path / "report/cpu.html").is_file() == (until == "report")
    assert copy.run("weasel", "run", "all").count("Skipping") == (6 if until == "report" else 3)
    if until == "merge":
        return
    # As the README declares it, the same comes out.
    before = merged(tmp_path)
    (tmp_path / "assets/prodigy/datasets.yml").write_text(block("README.md", "- name: person"), encoding="utf8")
    copy.run("weasel", "run", "merge")
    assert merged(tmp_path) == before


@pytest.mark.long
def test_the_first_hundred_texts(tmp_path):
    """Annotators save the first half of what rules found; half of that is a prediction to the merge."""
    copy = Copy(tmp_path)
    project = (tmp_path / "project.yml").read_text(encoding="utf8")
    project = project.replace("  - train-cpu\n  - evaluate-cpu\n  - check\n  - report\n", "")
    (tmp_path / "project.yml").write_text(project, encoding="utf8")
    texts = [{"text": f"Acme Corp took {n} mg."} for n in range(20)]
    write_jsonl(tmp_path / "assets/raw/texts.jsonl", texts)
    (tmp_path / "rules.py").write_text(block("docs/first-hundred.md", "import spacy"), encoding="utf8")
    (tmp_path / "training").mkdir()
    run_block(copy, block("docs/first-hundred.md", "python rules.py"))
    run_block(copy, block("docs/first-hundred.md", "python -m scripts.export"))
    rows = lines(tmp_path / "to-annotate/ORG.jsonl")
    assert [len(row["spans"]) for row in rows] == [1] * 20
    for row in rows[:10]:
        row |= {"answer": "accept", "_timestamp": 1}
    write_jsonl(tmp_path / "assets/prodigy/org.jsonl", rows)
    (tmp_path / "assets/prodigy/datasets.yml").write_text(block("docs/first-hundred.md", "- name: org"))
    printed = run_block(copy, block("docs/first-hundred.md", "weasel run all"))
    found = merged(tmp_path)
    assert found["rows"] == {"merged": 10, "prediction": 10}
    assert found["renamed"] == {"org: ORG to COMPANY": 20}  # as they are read
    assert "Spans whose label was renamed" in printed


def test_a_block_of_a_tokenizer_is_read_as_the_page_has_it(tmp_path):
    (tmp_path / "project.yml").write_text(block("docs/languages.md", "tokenizer:"), encoding="utf8")
    assert packages_of(read_rules(tmp_path / "project.yml").block) == ("jieba",)


@pytest.mark.long
def test_the_pages_on_data_and_evaluation(tmp_path):
    copy = Copy(tmp_path)
    write_docs(map(made, range(24)), LABELS, tmp_path / "path/to/corpus", "brat")
    tasks = str(tmp_path / "tasks")
    run_block(copy, block("docs/data.md", "python -m scripts.convert_brat", **{"/tmp/tasks": tasks}))
    assert len(lines(tmp_path / "tasks/PERSON.jsonl")) == 24
    write_exports(tmp_path / "assets/prodigy")
    (tmp_path / "assets/prodigy/datasets.yml").write_text(block("docs/data.md", "- name: person          # the data"))
    copy.run("weasel", "run", "all")
    counts = merged(tmp_path)["labels"]
    # The eight texts with both have PLACE, too, so "absent" is contradicted there; on the others it is known.
    assert {label: n["complete"] for label, n in counts.items()} == {"PERSON": 16, "PLACE": 24}
    run_block(copy, block("docs/evaluation.md", "weasel run evaluate-cpu", MODEL="training/cpu/model-best"))
    scores, metrics = (json.loads((tmp_path / name).read_text()) for name in ("scores.json", "metrics/cpu.json"))
    assert scores["all_gold"] == metrics["all_gold"]
    write_tasks(tmp_path / "novels/novels.jsonl", "PER", range(4))
    write_tasks(tmp_path / "novels/lab.jsonl", "Reagent", range(8, 12))
    declared = block("docs/evaluation.md", "- name: novels")
    lab = "- {name: lab, path: lab.jsonl, labels: [Reagent, Action]}\n"
    (tmp_path / "novels/datasets.yml").write_text(declared + lab, encoding="utf8")
    copy.run("python", "-m", "scripts.merge", "novels", "novels/corpus", "--metrics", "novels/merge.json")
    novels = json.loads((tmp_path / "novels/merge.json").read_text())["labels"]
    assert {label: n["complete"] for label, n in novels.items()} == {"PER": 4, "LOC": 4, "Reagent": 8, "Action": 8}


@pytest.mark.long
def test_from_a_server_to_a_model(tmp_path):
    copy = Copy(tmp_path)
    copy.environment["PGPASSWORD"] = PASSWORD
    with postgresql() as server:
        server.clear()
        walked = block(
            "docs/data.md", "python -m scripts.db_out", **{"postgresql://anna@db.example.com/prodigy": server.db}
        )
        for number in range(2):
            for label in LABELS:
                write_tasks(tmp_path / "tasks.jsonl", label, range(20 * number, 20 * number + 20))
                server.add(label.lower(), (tmp_path / "tasks.jsonl").read_bytes().splitlines())
            run_block(copy, walked)
            assert merged(tmp_path)["datasets"] == {"person": 20 * number + 20, "place": 20 * number + 20}
    assert (tmp_path / "report/cpu.html").is_file()
    added = {f"assets/prodigy/{name}" for name in ("person.jsonl", "place.jsonl", "datasets.yml")}
    assert added <= {*copy.run("git", "diff", "--cached", "--name-only").splitlines()}


@pytest.mark.long
def test_the_page_on_using_a_pipeline(project, tmp_path):
    run_block(project, block("docs/deploy.md", "weasel run package"))
    (wheel,) = (project.root / "dist").glob("en_*.whl")
    assert block("docs/deploy.md", "pip install --find-links").endswith(f" dist {wheel.name.partition('-')[0]}\n")
    for one in (project.root / "dist").glob("*.whl"):
        with zipfile.ZipFile(one) as file:
            file.extractall(tmp_path / "site")
    script = block("docs/deploy.md", "import spacy\n\nnlp")
    script += block("docs/deploy.md", "for doc in nlp.pipe(texts")
    environment = {**project.environment, "PYTHONPATH": str(tmp_path / "site")}
    found = subprocess.run(
        ["python", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 4
    subprocess.run(["python", "-c", block("docs/deploy.md", "from thinc.api")], env=project.environment, check=True)


@pytest.mark.long
def test_the_pages_on_experiments(tmp_path):
    copy = Copy(tmp_path / "copy")
    for name, value in zip(("user.name", "user.email"), ("t", "t@example.org"), strict=True):
        copy.run("git", "config", name, value)
    run_block(copy, block("docs/commands.md", "weasel run all"))
    run_block(copy, block("docs/experiments.md", "dvc repro evaluate-cpu"))
    compared = run_block(copy, block("docs/experiments.md", "git checkout -b expand"))
    assert re.search(r"project\.yml +merge\.alignment +drop +expand", compared)
    assert "all (micro)" in compared
    copy.run("git", "checkout", "-q", "main")
    copy.run("git", "branch", "-qD", "expand")
    (tmp_path / "copy/notes.txt").write_text("something to commit", encoding="utf8")
    assert "all (micro)" in run_block(
        copy, block("README.md", "dvc repro evaluate-cpu && git add", **{"Baseline": "Again"})
    )
    run_block(copy, block("docs/experiments.md", "dvc remote add", **{"s3://bucket/path": str(tmp_path / "store")}))


@pytest.mark.long
def test_what_to_fix_first(project):
    for part in blocks("consistency.md"):
        for command in part:
            project.run(*command)
    findings = project.root / "training/check-folds/findings.jsonl"
    found = json.loads(findings.read_text(encoding="utf8").partition("\n")[0])
    splits = json.loads((project.root / "corpus/manifest.json").read_text(encoding="utf8"))["splits"]
    assert found["texts"] == splits["train"]["texts"] + splits["dev"]["texts"] == 24 - splits["test"]["texts"]
    assert (project.root / "to-annotate/texts.jsonl").is_file()
    assert sorted(path.name for path in (project.root / "training").glob("*check*")) == ["check", "check-folds"]


@pytest.mark.long
def test_label_by_label(project):
    """A wrong tag is put right in between."""
    first, check, again, back = blocks("label-by-label.md")
    for name in ("name", "email"):
        project.run("git", "config", f"user.{name}", "t")
    for command in (*first, *check):
        project.run(*command)
    doc = next(doc for doc in map(made, range(24)) if noisy(doc) != doc)
    file = (project.root / "assets" / "brat" / "noisy" / doc.path).with_suffix(".ann")
    right = [standoff(doc.text, span, number) for number, span in enumerate(doc.spans, 1)]
    file.write_text("".join(right), encoding="utf8", newline="")
    assert "Skipping 'convert-brat'" not in project.run(*again[0])
    compared = project.run(*again[1])
    assert "No intervals" not in compared, "the predictions of before are in DVC's cache"
    # Ten steps find nothing, so there is no interval.
    rows = [line.split() for line in compared.splitlines() if line.startswith((*LABELS, "all"))]
    assert {row[0]: "+0.000" in row for row in rows} == {"PERSON": True, "PLACE": True, "all": True}
    (project.root / "assets" / "raw" / "new.txt").write_text("Nadia Barton lives in Paris.")
    exports = []
    for command in back:
        project.run(*command)
        if "scripts.export" in command:
            exports.append(json.loads((project.root / command[4] / "tasks.json").read_text(encoding="utf8")))
    corpus, raw = exports
    assert {task["data"]["text"] for task in corpus} == {made(number).text for number in range(24)}
    assert [(task["data"]["doc"], len(task["predictions"])) for task in raw] == [("new.txt", 1)]
    assert not re.search("raw|texts|exported|to-annotate", project.run("git", "status", "--porcelain", "-unormal"))


def exported(label: str, numbers: Sequence[int], time: int, name: str | None = None) -> list[dict]:
    """Answers for one label as Prodigy exports them, with the ids that two exports have in common."""
    docs = [make_doc(number, labels=("PERSON", "PLACE", "DATE"), words=60) for number in numbers]
    return [
        {
            "text": doc.text,
            "spans": [{"start": s, "end": e, "label": name or label} for s, e, own in doc.spans if own == label],
            "answer": "accept",
            "_view_id": "ner_manual",
            "_task_hash": number,
            "_timestamp": time + number,
        }
        for number, doc in zip(numbers, docs, strict=True)
    ]


@pytest.mark.long
def test_the_second_week(tmp_path):
    """What people do in between is done here: export, annotate, and edit datasets.yml as the page says."""
    copy = Copy(tmp_path)
    folder, declarations = tmp_path / "assets/prodigy", tmp_path / "assets/prodigy/datasets.yml"
    export, colleague, both, texts, again, predict = blocks("second-week.md")
    page = (ROOT / "docs/second-week.md").read_text(encoding="utf8")
    exports, leos, dates = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)

    def run(commands: list[list[str]]) -> str:
        return " ".join("".join(copy.run(*command) for command in commands).split())

    write_jsonl(folder / "person.jsonl", first := exported("PERSON", range(16), 1000))
    write_jsonl(folder / "place.jsonl", exported("PLACE", range(24), 1000))
    run([["weasel", "run", "all"]])
    assert merged(tmp_path)["labels"]["PERSON"]["gold"] == sum(len(row["spans"]) for row in first)

    later = exported("PERSON", range(1, 20), 2000)
    next(row for row in later if row["spans"])["spans"].pop()
    write_jsonl(folder / "person-2026-06-01.jsonl", later)
    declarations.write_text(exports + yaml.safe_dump(yaml.safe_load(declarations.read_text(encoding="utf8"))[1:]))
    run(export)
    assert merged(tmp_path)["labels"]["PERSON"]["gold"] == sum(len(row["spans"]) for row in (first[0], *later))
    assert merged(tmp_path)["rows"] == {"merged": 44, "superseded": 15}

    write_jsonl(folder / "leo.jsonl", leo := exported("PERSON", range(8, 24), 1000, "PER"))
    assert "leo PER" in run(colleague)
    one = next(one for one in yaml.safe_load(declarations.read_text(encoding="utf8")) if one["name"] == "leo")
    assert one["labels"] == ["PER"]
    others = [one for one in yaml.safe_load(declarations.read_text(encoding="utf8")) if one["name"] != "leo"]
    declarations.write_text(yaml.safe_dump([*others, *yaml.safe_load(leos)]), encoding="utf8")
    run(both)
    assert merged(tmp_path)["labels"].keys() == {"PERSON", "PLACE"}
    assert merged(tmp_path)["renamed"] == {"leo: PER to PERSON": sum(len(row["spans"]) for row in leo)}
    assert merged(tmp_path)["agreement"]["PERSON"]["texts"] == 12

    run(texts)
    listed = {row["text"] for row in lines(tmp_path / "texts/texts.jsonl")}
    annotated = [row for row in exported("DATE", range(0, 24, 2), 3000) if row["text"] in listed]
    assert (len(listed), len(annotated)) == (24, 12)
    write_jsonl(folder / "date.jsonl", annotated)
    declarations.write_text(declarations.read_text(encoding="utf8") + dates, encoding="utf8")
    run(again)
    assert merged(tmp_path)["labels"]["DATE"]["complete"] == 12

    run(predict)
    work = lines(tmp_path / "to-annotate/DATE.jsonl")
    train = {doc.text for doc in read_corpus(tmp_path / "corpus", ["train"])}
    assert {row["text"] for row in work} == train - {row["text"] for row in annotated}
    # One of them is corrected and saved; the others are merged as they are.
    work[0] |= {"answer": "accept", "spans": [], "_timestamp": 4000}
    write_jsonl(folder / "more-dates.jsonl", work)
    declared = yaml.safe_load(declarations.read_text(encoding="utf8"))
    declared[-1]["path"] = ["date.jsonl", "more-dates.jsonl"]
    declarations.write_text(yaml.safe_dump(declared), encoding="utf8")
    run(export)
    assert merged(tmp_path)["rows"]["prediction"] == len(work) - 1
    assert merged(tmp_path)["labels"]["DATE"]["complete"] == 13


def test_git_ignores_what_the_pages_export_and_predict():
    folders = {out for _, content in BLOCKS.values() for out in re.findall(r"scripts\.export \S+ (\S+)", content)}
    for folder in {*folders, "assets/raw"}:
        subprocess.run(["git", "check-ignore", "-q", f"{folder}/file.txt"], cwd=ROOT, check=True)
    assert len(folders) > 2


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    """The wheel, whose projects train for a few steps."""
    folder = tmp_path_factory.mktemp("installed")
    found = install(build(folder / "source", folder / "wheels"), folder / "site")
    edit(found.site / "labelwise" / PROJECT, "  cpu_steps: 600", "  cpu_steps: 10")
    return found


@pytest.mark.long
def test_a_project_of_the_installed_package_is_run_and_upgraded(installed, tmp_path):
    bash = ("bash", "-euc")
    later = installed.next(tmp_path / "later", PROJECT, "Merge the data sets", "Now merge the data sets")
    for one in (installed, later):
        one.environment |= COMMITTER
    installed.run(*bash, block("docs/install.md", "labelwise init mine"), cwd=tmp_path)
    project = tmp_path / "mine"
    assert "<h1>The CPU pipeline</h1>" in (project / "report/cpu.html").read_text(encoding="utf8")
    assert json.loads((project / "metrics/cpu.json").read_text())["labelwise"] == labelwise.__version__
    again = installed.run("weasel", "run", "all", cwd=project)
    assert again.count("Skipping") == 5, "the report shows what other commands have found since"
    installed.run("dvc", "repro", "report", cwd=project)
    assert "Running stage" not in installed.run("dvc", "repro", "report", cwd=project)
    edit(project / "project.yml", "  cpu_steps: 10", "  cpu_steps: 12")
    (project / "assets/raw/.gitkeep").unlink()
    (project / "notes").mkdir()
    (project / "notes/.gitignore").write_text("/large\n")  # as DVC writes it
    (project / "notes/large").touch()
    installed.run(*bash, "git add -A && git commit -qm mine", cwd=project)
    printed = later.run(*bash, block("docs/install.md", "git worktree add"), cwd=project)
    assert "--max-steps 12" in printed
    assert printed.count("Skipping") == 0, "all depend on the version"
    assert "help: Now merge the data sets" in (project / "project.yml").read_text(encoding="utf8")
    assert not (project / "assets/raw/.gitkeep").exists()
    assert (project / "notes/large").exists()
    assert "notes" not in later.run("git", "ls-tree", "-r", "--name-only", "labelwise", cwd=project)
    later.run("labelwise", "update-dvc", "--check", cwd=project)


@pytest.mark.long
def test_the_four_functions_in_a_notebook(installed, tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    installed.run("bash", "-euc", block("docs/library.md", "labelwise make-demo tasks"), cwd=tmp_path)
    for name, value in installed.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    code = block("docs/library.md", "from pathlib import Path")
    # Each paragraph is a cell; what numpy was loaded with before is none of ours.
    cells = ["import numpy", *code.split("\n\n"), "import labelwise; labelwise.__file__"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    printed = ["".join(output.get("text", "") for output in cell.outputs) for cell in notebook.cells]
    assert str(installed.site) in str(notebook.cells[-1].outputs)
    assert any("OPENBLAS_NUM_THREADS=1" in text for text in printed)
    assert "<h1>The CPU pipeline</h1>" in (tmp_path / "mine/report.html").read_text(encoding="utf8")


@pytest.mark.long
def test_weasel_clones_the_project_as_git_does(project, tmp_path):
    project.commit("all")
    command = block("docs/install.md", "weasel clone", **{"https://github.com/you/labelwise.git": str(project.root)})
    run_block(project, f"cd {tmp_path}\n{command}")
    heads = {project.run("git", "-C", str(root), "rev-parse", "HEAD") for root in (project.root, tmp_path / "mydir")}
    assert len(heads) == 1


@pytest.mark.long
@pytest.mark.parametrize("same_line", [False, True])
def test_a_clone_is_upgraded(tmp_path, same_line):
    later = Copy(tmp_path / "later")
    shutil.copytree(later.root, tmp_path / "mine")
    mine = Copy.__new__(Copy)
    mine.root, mine.environment = tmp_path / "mine", {**later.environment, **COMMITTER}
    mine.run("git", "remote", "add", "origin", str(later.root))
    for copy, value in ((later, "contract"), (mine, "expand")):
        copy.set("alignment" if same_line or copy is mine else "overlap", value)
    edit(later.root / "project.yml", "  help: Merge the data sets", "  help: Now merge the data sets")
    for copy in (later, mine):
        copy.run("python", "-m", "scripts.update_dvc")
        copy.commit("changed")
    later.run("git", "tag", "--force", "v0.2.0")
    pulled = mine.run("bash", "-euc", block("docs/install.md", "git pull"), fails=same_line)
    project = mine.root / "project.yml"
    if same_line:
        assert "CONFLICT (content): Merge conflict in project.yml" in pulled
        edited = re.sub(r"<<<<<<< .*\n(.*\n)=======\n.*\n>>>>>>> .*\n", r"\1", project.read_text(encoding="utf8"))
        project.write_text(edited, encoding="utf8")
        mine.run("bash", "-euc", block("docs/install.md", "python -m scripts.update_dvc"))
    assert yaml.safe_load(project.read_text(encoding="utf8"))["merge"]["alignment"] == "expand"
    assert "Now merge the data sets" in (mine.root / "dvc.yaml").read_text(encoding="utf8")
    assert mine.run("git", "status", "--porcelain") == ""
    mine.run("python", "-m", "scripts.update_dvc", "--check")
