import re
import shlex
from importlib import import_module
from xml.etree import ElementTree

import pytest
import typer
import yaml
from dvc.cli.parser import get_main_parser

from benchmarks import measure, plot, tables
from tests.conftest import ROOT

PAGES = {page: (ROOT / page).read_text(encoding="utf8") for page in tables.PAGES}
RESULTS = sorted(path.stem for path in (ROOT / measure.RESULTS).glob("*.json"))


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_a_page_has_the_numbers_of_the_results(page):
    assert tables.update(PAGES[page]) == PAGES[page], "python -m benchmarks.tables"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_the_pictures_of_a_page_are_those_of_the_results(page):
    for file, picture in tables.draw_plots(PAGES[page]).items():
        assert file.read_text(encoding="utf8") == picture, "python -m benchmarks.tables"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_no_table_of_a_page_has_numbers_of_its_own(page):
    by_hand = re.sub(r"(?s)```.*?```", "", tables.BLOCK.sub("", PAGES[page]))
    assert not re.findall(r"(?m)^\|.*?\| *([\d.,]*\d%?) *\|", by_hand)


def test_all_results_are_shown():
    named = {name for page in PAGES.values() for name in re.findall(r"<!-- result: (\S+) -->", page)}
    assert named == {*RESULTS}


def parse(command: str) -> bool:
    """Return whether a command's own parser accepts it, without running it."""
    match shlex.split(command):
        case ["python", "-m", module, *arguments]:
            assert not [argument for argument in arguments if re.fullmatch(r"[A-Z]+|\.\.\.", argument)], (
                "give it as it was run"
            )
            app = typer.Typer()
            app.command()(import_module(module).main)
            typer.main.get_command(app).make_context(module, arguments)
        case ["make", target, *variables]:
            targets = re.findall(r"(?m)^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf8"))
            assert target in targets, f"make has {targets}"
            values = dict(variable.split("=", 1) for variable in variables)
            if target == "bench":
                parse(f"python -m benchmarks.{values['BENCH']} {values.get('ARGS', '')}")
        case ["weasel", "run", name]:
            project = yaml.safe_load((ROOT / "project.yml").read_text(encoding="utf8"))
            names = [*project["workflows"], *(entry["name"] for entry in project["commands"])]
            assert name in names, f"weasel has {names}"
        case ["dvc", *arguments]:
            get_main_parser().parse_args(arguments)
        case _:
            pytest.fail(f"nothing runs {command}")
    return True


@pytest.mark.parametrize("name", RESULTS)
def test_the_command_of_a_result_runs(name):
    commands = tables.read_result(name).command.split("; ")
    assert all(map(parse, commands))


@pytest.mark.parametrize("page", ['[1](results/gone.json "a / b")', '[1](results/crf.json "a / b")'])
def test_a_number_of_no_result_is_an_error(page):
    with pytest.raises(tables.NotInStep, match="json"):
        tables.update(page)


def test_a_picture_has_a_point_for_each_row_higher_for_a_better_one():
    columns = {"method": "", "F1": ".3f", "CPU seconds of training": ",.0f"}
    rows = [["a & b", (0.5, 0.4, 0.6), 10.0], ["a & b", (0.7, 0.65, 0.75), 100.0], ["c", 0.6, 20.0]]
    picture = plot.draw(measure.Result("", None, None, measure.Machine(None, None, None), columns=columns, rows=rows))
    root = ElementTree.fromstring(picture)
    points = [(float(element.get("cx")), float(element.get("cy"))) for element in root.findall(".//{*}circle")]
    assert sorted(points) == [points[0], points[2], points[1]], "more seconds are to the right"
    assert sorted(points, key=lambda point: -point[1]) == [points[0], points[2], points[1]]
    assert {"a & b", "c", "10", "100", "0.4", "0.8"} <= {element.text for element in root.findall(".//{*}text")}
