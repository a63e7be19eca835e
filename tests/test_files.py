import pytest

from livemamba.errors import InputError
from livemamba.files import whole_file, whole_folder


def _everything(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "run") as partial:
        (partial / "half").write_text("x")
        assert not (tmp_path / "run").exists()
        raise KeyboardInterrupt
    assert _everything(tmp_path) == []
    with whole_folder(tmp_path / "deep" / "run") as partial:
        (partial / "all").write_text("x")
    assert _everything(tmp_path) == ["deep", "deep/run", "deep/run/all"]


def test_only_its_own_kind_is_replaced(tmp_path):
    run = tmp_path / "run"
    with whole_folder(run) as partial:
        (partial / "mark").write_text("old")
    with pytest.raises(InputError, match="run exists"), whole_folder(run):
        pass
    with pytest.raises(InputError, match="holds no other"), whole_folder(run, replaces="other"):
        pass
    with pytest.raises(ZeroDivisionError), whole_folder(run, replaces="mark"):
        raise ZeroDivisionError
    assert (run / "mark").read_text() == "old"
    with whole_folder(run, replaces="mark") as partial:
        (partial / "mark").write_text("new")
    assert (run / "mark").read_text() == "new"
    assert _everything(tmp_path) == ["run", "run/mark"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="is a file"), whole_folder(tmp_path / "file"):
        pass


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "out.json"
    with whole_file(path) as partial:
        assert partial.suffix == ".json"
        partial.write_text("one")
    with pytest.raises(ZeroDivisionError), whole_file(path) as partial:
        partial.write_text("two")
        raise ZeroDivisionError
    assert path.read_text() == "one"
    assert _everything(tmp_path) == ["out.json"]
