import os
import re
import sys
import zipfile
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest

from labelwise.demo.write import make_demo
from tests.clone import DEV, Clone
from tests.conftest import ROOT

nbformat = pytest.importorskip("nbformat")
NOTEBOOK = ROOT / "notebooks" / "colab.ipynb"


@pytest.mark.long
def test_the_notebook_runs_from_top_to_bottom(tiny_bert, tmp_path):
    pytest.importorskip("spacy_transformers")
    nbclient = pytest.importorskip("nbclient")  # its imports take a second
    (tmp_path / "repository").mkdir()
    copy = Clone(tmp_path / "repository", programs=DEV)
    make_demo(tmp_path / "brat", docs=16, labels=2, words=40)
    with zipfile.ZipFile(tmp_path / "data.zip", "w") as archive:
        for file in sorted((tmp_path / "brat").rglob("*.*")):
            archive.write(file, file.relative_to(tmp_path / "brat"))
    environment = tmp_path / "environment"  # which is there already, and so isn't installed
    environment.mkdir()
    (environment / "bin").symlink_to(Path(sys.executable).parent)
    (environment / ".ready").touch()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    (settings,) = (cell for cell in notebook.cells if "parameters" in cell.metadata.get("tags", ()))
    for name, value in (
        ("REPOSITORY", str(copy.root)),
        ("DATA", "data.zip"),
        ("TRANSFORMER", str(tiny_bert)),
        ("STEPS", 2),
        ("ENVIRONMENT", str(environment)),
    ):
        settings.source, count = re.subn(rf"(?m)^{name} = \S.*?(?=  #|$)", f"{name} = {value!r}", settings.source)
        assert count == 1, name
    (tmp_path / "colab").mkdir()
    (tmp_path / "data.zip").rename(tmp_path / "colab" / "data.zip")
    folder = {"metadata": {"path": str(tmp_path / "colab")}}
    with patch.dict(os.environ, copy.environment, clear=True):
        nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=folder).execute()
    project = tmp_path / "colab" / "labelwise"
    printed = {
        cell.id: "".join(output.get("text", "") for output in cell.get("outputs", ())) for cell in notebook.cells
    }
    assert "report/gpu.html" in printed["train"].splitlines()[-1]
    assert (project / "assets/brat").is_dir()
    (shown,) = next(cell for cell in notebook.cells if cell.id == "report").outputs
    assert "GPU pipeline" in shown["data"]["text/html"]
    (wheel,) = (project / "dist/gpu").glob("en_ner_gpu-0.1.0+m*.whl")
    assert str(wheel) in printed["package"]


def test_it_is_committed_without_output():
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert [cell.id for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")] == []


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", {"has_gpu": False, "precision": "fp32"}),
        ("Tesla T4, 15360 MiB, 580.82.07, 7.5\n", {"has_gpu": True, "precision": "fp16"}),
        ("NVIDIA A100-SXM4-40GB, 40960 MiB, 590.1, 8.0\nNVIDIA A100, 40960 MiB, 590.1, 8.0", {"precision": "bf16"}),
        ("Tesla T4, 15360 MiB, 550.54.15, 7.5\n", "Driver 550.54.15, compute capability 7.5: CUDA 13 needs driver 580"),
        ("Tesla P100-PCIE-16GB, 16384 MiB, 580.1, 6.0\n", "capability 6.0: CUDA 13 needs"),
    ],
)
def test_the_notebook_names_a_runtime_that_is_too_old_before_it_installs(message, expected, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: message and f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", lambda *args, **options: SimpleNamespace(stdout=message))
    (source,) = (cell.source for cell in nbformat.read(NOTEBOOK, as_version=4).cells if "nvidia-smi" in cell.source)
    names = {"USE_GPU": True}
    with pytest.raises(RuntimeError, match=expected) if isinstance(expected, str) else nullcontext():
        exec(source, names)
        assert names.items() >= expected.items()
