"""The compiled kernels for tests: those that are installed, else built for the session where there is a compiler."""

import subprocess
import sys
from pathlib import Path

import pytest

from livemamba.ops import native

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def kernels(tmp_path_factory) -> native.Kernels:
    try:
        return native.find()
    except native.UnusableError:
        built = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-c", "import setuptools; setuptools.setup()", "build_ext"]
    places = ["--build-lib", str(built), "--build-temp", str(built / "objects")]
    done = subprocess.run([*command, *places], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr  # optional: a build without a compiler succeeds, with nothing built
    try:
        return native.find(built / "livemamba" / "ops")
    except native.UnusableError as error:
        pytest.skip(f"no kernels: {error}, and building them gave: {done.stderr.strip().splitlines()[-1:]}")
