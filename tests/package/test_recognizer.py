import inspect
import json
import re
import shutil
import tomllib
import zipfile
from pathlib import Path
from textwrap import dedent

import pytest
from spacy.language import Language
from spacy.util import registry

import spacy_per_label
from labelwise.package.wheel import build_recognizer
from spacy_per_label import calibrate
from tests.bare import bare_environment, in_bare
from tests.conftest import ROOT

FOLDER = ROOT / "spacy_per_label"
README = (FOLDER / "README.md").read_text(encoding="utf8")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build_recognizer(folder)
    [wheel] = folder.iterdir()
    return wheel


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory) -> Path:
    python = bare_environment(tmp_path_factory.mktemp("bare") / "venv", "spacy", "pip", "pytest")
    in_bare(python, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
    in_bare(python, "-m", "pip", "check")
    return python


def test_the_scripts_of_the_readme_and_of_calibrate_learn_from_partial_annotation(python, tmp_path):
    [script] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert script.count("\n") <= 22
    (tmp_path / "script.py").write_text(script, encoding="utf8")
    *_, printed = in_bare(python, "script.py", cwd=tmp_path).splitlines()
    assert printed == "[('Bob', 'PERSON'), ('Rome', 'PLACE')]"
    fitted = []
    [script] = re.findall(r"(?m)^    import spacy\n(?:    .*\n|\n)*", calibrate.__doc__)
    for source in ("out/model-best", "out/calibrated"):
        again = dedent(script).replace("out/model-best", source)
        (tmp_path / "script.py").write_text(again, encoding="utf8")
        in_bare(python, "script.py", cwd=tmp_path)
        fitted.append(json.loads((tmp_path / "out/calibrated/per_label/cfg").read_text()))
    assert fitted[0] == fitted[1]
    assert fitted[0]["slopes"].keys() == {"PERSON", "PLACE"}
    assert all(slope > 1 for slope in fitted[0]["slopes"].values())  # all that it finds is right


def test_the_readme_lists_each_setting_of_each_registered_function():
    names = [name for name in registry.architectures.get_all() if name.startswith("spacy-per-label.")]
    documented = {name: {} for name in names}
    for name in names:
        for key, parameter in inspect.signature(registry.architectures.get(name)).parameters.items():
            documented[name][key] = "" if parameter.default in ({}, inspect.Parameter.empty) else parameter.default
    config = Language.get_factory_meta("per_label").default_config
    named = {key: next(iter(value.values())) if isinstance(value, dict) else value for key, value in config.items()}
    documented["[components.ner]"] = named | {"factory": "per_label"}
    for name, settings in documented.items():
        if name == "spacy-per-label.Transformer.v1":  # it isn't trained any more
            continue
        shared = name.partition(".")[2].endswith(("Transformer.v1", "Transformer.v2"))  # one table for both
        title = "a transformer" if shared else f"`{name}`"
        [table] = re.findall(rf"(?ms)^\| {re.escape(title)} \|.*?(?=\n\n)", README)
        listed = {}
        for _, names, defaults, *_ in (row.split("|") for row in table.splitlines()[2:]):
            keys, values = re.findall(r"`(\w+)`", names), [default.strip(' `"') for default in defaults.split(",")]
            listed |= zip(keys, values if any(values) else [""] * len(keys), strict=True)
        expected = {key: json.dumps(value).strip('"') for key, value in settings.items()}
        assert ({key: listed[key] for key in expected} if shared else listed) == expected


@pytest.mark.long
def test_its_tests_pass_without_labelwise(python, tmp_path):
    shutil.copytree(ROOT / "tests/spacy_per_label", tmp_path / "tests/spacy_per_label")
    shutil.copy(ROOT / "tests/pretend_gpu.py", tmp_path / "tests")
    (tmp_path / "tests/__init__.py").touch()
    printed = in_bare(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", "-k", "not memory", cwd=tmp_path)
    assert re.search(r"\d\d passed", printed)


def test_the_wheel_can_be_built_again_where_it_is_installed(wheel, tmp_path, monkeypatch):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        names = {name.partition("/")[2] for name in archive.namelist() if name.startswith("spacy_per_label/")}
    monkeypatch.setattr(spacy_per_label, "__file__", str(tmp_path / "site/spacy_per_label/__init__.py"))
    (tmp_path / "again").mkdir()
    build_recognizer(tmp_path / "again")
    [again] = (tmp_path / "again").iterdir()
    assert (again.name, again.read_bytes()) == (wheel.name, wheel.read_bytes())
    local = re.fullmatch(
        rf"spacy_per_label-{spacy_per_label.__version__}\+c[0-9a-f]{{8}}-py3-none-any\.whl", wheel.name
    )
    assert local, "its code tells builds of a version apart"
    with (tmp_path / "site/spacy_per_label/words.py").open("a") as file:
        file.write("# edited")
    (tmp_path / "edited").mkdir()
    build_recognizer(tmp_path / "edited")
    assert next((tmp_path / "edited").iterdir()).name != wheel.name
    assert names == {path.name for path in FOLDER.iterdir() if path.is_file()}
    required = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]["dependencies"]
    assert f"spacy-per-label[small]>={spacy_per_label.__version__}" in required
