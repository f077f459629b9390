"""The installed package, once for all tests of a process."""

import pytest

from tests.project.installed import Installed, build, install


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    return install(build(folder / "source", folder / "wheels"), folder / "site")
