import json

import pytest

from livemamba.conversation import Conversation, Decision, Frames, Text
from livemamba.data.conversation_file import read_conversations, write_conversations
from livemamba.errors import InputError, MissingError

ASK = Text(role="user", text="What is it?\u2028Say it.")  # a line separator that is no end of a line here
SAID = Conversation(items=(ASK, Decision(kind="say", text="An égg.")))
SEEN = Conversation(items=(Text(role="prompt", text="Watch."), Frames(first_tick=3, count=2)), video_id="v")
MINE = Conversation(items=(Text(role="prompt", text="Watch."), Frames(first_tick=3, count=2)))


def test_groups_come_back_unchanged(tmp_path):
    groups = ((SAID,), (SEEN, SAID))
    write_conversations(tmp_path / "all.jsonl", groups)
    assert read_conversations(tmp_path / "all.jsonl") == groups
    assert (tmp_path / "all.jsonl").read_text("utf-8").count("\n") == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: a group without a conversation"),
        ('{"items": []}', "line 2: a conversation needs at least one item"),
        ('{"items": [{"type": "film"}]}', "line 2: item 0: needs a 'type'"),
        ("[3]", "line 2: expected an object"),
        (json.dumps([SEEN.to_dict(), MINE.to_dict()]), "line 2, conversation 2: frames of no video"),
        (json.dumps(Conversation(items=(ASK,)).to_dict()), "line 2: nothing to learn"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    path = tmp_path / "all.jsonl"
    path.write_text(json.dumps(SAID.to_dict()) + "\n" + line + "\n", encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_conversations(path)
    assert f"{path}: {message}" in str(error.value)


def test_an_absent_or_empty_file_is_refused(tmp_path):
    with pytest.raises(MissingError, match="do not exist"):
        read_conversations(tmp_path / "all.jsonl")
    (tmp_path / "all.jsonl").write_text("\n\n")
    with pytest.raises(InputError, match="no conversation in it"):
        read_conversations(tmp_path / "all.jsonl")
    (tmp_path / "all.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not a text file"):
        read_conversations(tmp_path / "all.jsonl")
