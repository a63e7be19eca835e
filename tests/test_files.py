import os
from pathlib import Path

import pytest

from livemamba.errors import InputError
from livemamba.files import check_replaceable, whole_file, whole_folder


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


def test_missing_parents_are_removed_again_but_not_what_others_put_there(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_folder(tmp_path / "a" / "b" / "run"):
        raise ZeroDivisionError
    assert _everything(tmp_path) == []
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "a" / "b.txt") as partial:
        partial.write_text("half")
        (tmp_path / "a" / "other").write_text("x")
        raise ZeroDivisionError
    assert _everything(tmp_path) == ["a", "a/other"]


def test_what_a_killed_process_of_the_same_number_left_is_no_obstacle(tmp_path):
    # In a container every process may be number 1.
    (tmp_path / f".run.partial-{os.getpid()}").mkdir()
    with whole_folder(tmp_path / "run") as partial, whole_folder(tmp_path / "run2") as other:
        (partial / "all").write_text("x")
        (other / "all").write_text("x")
    assert (tmp_path / "run" / "all").is_file()


def test_a_link_stays_and_its_folder_is_replaced(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for _ in range(2):
        with whole_folder(tmp_path / "link", replaces="mark") as partial:
            (partial / "mark").write_text("x")
    assert (tmp_path / "link").is_symlink()
    assert _everything(tmp_path / "real") == ["mark"]
    monkeypatch.chdir(tmp_path / "real")
    with whole_folder(".", replaces="mark") as partial:
        (partial / "mark").write_text("here")
    assert (tmp_path / "real" / "mark").read_text() == "here"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="leads nowhere"), whole_folder(tmp_path / "loop"):
        pass


def test_other_peoples_files_are_not_lost(tmp_path):
    for name in ("mark", "notes.txt"):
        (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=r"notes\.txt, which would be lost"):
        check_replaceable(tmp_path, replaces="mark", only=["mark"])
    check_replaceable(tmp_path, replaces="mark", only=["mark", "notes.txt", "more"])


def test_a_file_among_the_parents_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="file is a file, not a folder"):
        check_replaceable(tmp_path / "file" / "deep" / "run", replaces=None)


def test_the_old_folder_comes_back_if_the_new_one_cannot_take_its_place(tmp_path, monkeypatch):
    with whole_folder(tmp_path / "run") as partial:
        (partial / "mark").write_text("old")
    rename = Path.rename

    def fail_for_the_new_one(self, target):
        if "partial" in self.name:
            raise OSError("no")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="no"), whole_folder(tmp_path / "run", replaces="mark"):
        pass
    assert _everything(tmp_path) == ["run", "run/mark"]
