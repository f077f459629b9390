"""Check that a project's data are the intended ones, and complete."""

from pathlib import Path

from labelwise.base.errors import InputError
from labelwise.base.sections import DvcSection, VarsSection, check_pipeline, is_student
from labelwise.base.settings import read_section
from labelwise.datasets.untracked import check_kept
from labelwise.sources.brat import find_documents
from labelwise.sources.files import has_data

DEMO = Path("assets/demo")
OWN = Path("assets")


def check_project(project: Path) -> None:
    """Check the data of a project, and the lists of pipelines that DVC trains."""
    root = project.parent
    dvc = read_section(project, "dvc", DvcSection)
    if not dvc.pipelines:
        raise InputError(f"{project}: dvc: pipelines: [] trains nothing; name a config, such as [cpu]")
    for name in (*dvc.pipelines, *dvc.seeds, *dvc.students):
        check_pipeline(name, root)
    if student := next((name for name in dvc.pipelines if is_student(name, root)), ""):
        raise InputError(f"{project}: dvc: pipelines: {student} learns from raw texts, too; write it in `students`")
    if other := next((name for name in dvc.students if not is_student(name, root)), ""):
        raise InputError(
            f"{project}: dvc: students: {other} isn't a student; write it in `pipelines`, or in [paths] of its "
            f'config: corpus = "training/{other}/corpus"'
        )
    check_own_data(root)
    data = data_of(project)
    for folder in (data / "brat", data / "prodigy"):
        check_kept(folder, root)
    if not has_brat(root / data / "brat") and not has_data(root / data / "prodigy"):
        remedy = "weasel run demo makes the demo" if data == DEMO else f"or try the demo: data: {DEMO} in {project}"
        raise InputError(
            f"no data: put a brat corpus into {data}/brat, or Prodigy's datasets into {data}/prodigy; {remedy}"
        )


def check_own_data(root: Path) -> None:
    """Refuse own data, in assets/brat or assets/prodigy, if `data` of project.yml is the demo."""
    project = root / "project.yml"
    if not project.is_file() or data_of(project) != DEMO:
        return
    for folder, has_files in ((OWN / "brat", has_brat), (OWN / "prodigy", has_data)):
        if has_files(root / folder):
            raise InputError(
                f"{folder} has your own data, but {project} says `data: {DEMO}`, the demo. Write `data: {OWN}`"
            )


def data_of(project: Path) -> Path:
    """Read the folder of a project's data."""
    return Path(read_section(project, "vars", VarsSection, others=True).data)


def has_brat(folder: Path) -> bool:
    """Return whether a folder has brat documents."""
    return folder.is_dir() and bool(find_documents(folder))
