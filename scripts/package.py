"""Put the best pipeline into an installable wheel, with scores by label and a model card."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from labelwise.base.console import msg, run, user_errors
from labelwise.base.sections import PackageName, ReportSection
from labelwise.base.settings import read_section
from labelwise.package.wheel import make_package

Option = typer.Option


def package_cli(
    pipeline: Annotated[str, typer.Argument(help="Name of a config, such as cpu: dist/cpu")],
    root: Annotated[Path, Option(help="Folder of the project, whose project.yml has a section `package`")] = Path(),
) -> None:
    """Put the best pipeline into an installable wheel, with scores by label and a model card."""
    out = root / "dist" / pipeline
    with user_errors("No package was made"):
        identity = read_section(root / "project.yml", "package", PackageName)
        target = read_section(root / "project.yml", "report", ReportSection).target_f1
        wheel = make_package(root, pipeline, out, identity, target)
    if not identity.license:
        msg.warn("No license is named", "Set `license` in project.yml: others may not use a pipeline without one")
    msg.info(f"Model card, with the labels that are ready: {out / 'README.md'}")
    size = wheel.stat().st_size / 2**20
    msg.good(f"{wheel} ({size:,.1f} MB); to install it and its requirements:")
    typer.echo(shlex.join(["pip", "install", *map(str, sorted(out.glob("*.whl")))]))


if __name__ == "__main__":
    run(package_cli)
