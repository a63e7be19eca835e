"""The compiled kernels for tests: those that are installed, else built for the session where there is a compiler."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from livemamba.ops import native

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def kernels(tmp_path_factory) -> native.Kernels:
    try:
        return native.find()
    except native.UnusableError as error:
        missing = error
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip(f"{missing}, and there is no C compiler to build them")
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["ext-modules"][0]
    built = tmp_path_factory.mktemp("built")
    to = built / f"_kernels{native.EXTENSION_SUFFIXES[0]}"
    command = [compiler, "-shared", "-fPIC", *settings["extra-compile-args"], "-o", str(to), *settings["sources"]]
    subprocess.run(command, cwd=ROOT, check=True)
    return native.find(built)
