"""Put the best pipeline into an installable wheel, with scores by label and a model card."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from labelwise.package.wheel import PackageName, make_package
from scripts.console import msg, run, user_errors

Option = typer.Option
Pipeline = Literal["cpu", "gpu"]


def package_cli(
    out: Annotated[Path, typer.Argument(help="Folder for the wheel and its card, which is replaced")],
    pipeline: Annotated[Pipeline, Option(help="Which pipeline")],
    name: Annotated[str, Option(help="Name of the package, without the language, which is put before it")],
    version: Annotated[str, Option(help="Such as 1.0.0")],
    license_name: Annotated[
        str, Option("--license", help="Such as mit; see hf.co/docs/hub/repositories-licenses")
    ] = "",
    description: Annotated[str, Option(help="What it is for")] = "",
    root: Annotated[Path, Option(help="Folder of the project")] = Path(),
) -> None:
    """Put the best pipeline into an installable wheel, with scores by label and a model card."""
    with user_errors("No package was made"):
        made = make_package(root, pipeline, out, PackageName(name, version, license_name, description))
    if not license_name:
        msg.warn("No licence is named", "package_license in project.yml: nobody else may use a pipeline without one")
    tell = msg.warn if made.contents.words else msg.info
    tell(made.contents.describe())
    msg.info(f"{out / 'README.md'} is its model card")
    msg.good(f"{made.wheel} has {made.size / 2**20:,.1f} MB; install it with: pip install {made.wheel}")


if __name__ == "__main__":
    run(package_cli)
