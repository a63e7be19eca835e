"""Fixtures that every room's tests share."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def test_data() -> Path:
    """The folder with real annotations, clips and the GPT-NeoX tokenizer; skips where there is none."""
    folder = os.environ.get("LIVEMAMBA_TEST_DATA")
    if not folder:
        pytest.skip("LIVEMAMBA_TEST_DATA names no folder with real clips and annotations")
    path = Path(folder).resolve()
    if not path.is_dir():
        pytest.fail(f"LIVEMAMBA_TEST_DATA is {folder!r}, which is no folder")
    return path
