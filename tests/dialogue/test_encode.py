import numpy as np
import pytest

from livemamba.conversation import Conversation, Decision, Frames, Text, coaching_step
from livemamba.dialogue.encode import IGNORE, Part, decode, encode
from livemamba.dialogue.inspect import position_rows, position_table
from livemamba.errors import InputError
from livemamba.timeline import Message

Q = 3


def _example(**options):
    """Pitfall D3's example: six frames, an utterance at 1.2 s."""
    message = Message(time_s=1.2, kind="success", text="You poured the egg.")
    return coaching_step(
        prompt="Pour the egg.", first_tick=0, end_tick=6, messages=[message], **{"step_ends": False, **options}
    )


def test_every_frame_has_one_target_at_its_own_last_visual_position(small_tokens):
    encoded = encode(_example(), small_tokens, num_queries=Q)
    ids = small_tokens.config
    visual = np.flatnonzero(encoded.visual).reshape(6, Q)
    last = visual[:, -1]
    assert encoded.decisions[last].all()
    assert (encoded.targets[visual[:, :-1]] == IGNORE).all()
    # 1.2 s is first shown by the frame of tick 3 (1.5 s): there, and only there, the model is to speak.
    speak = [ids.response_id if tick == 3 else ids.vision_id for tick in range(6)]
    assert encoded.targets[last].tolist() == speak
    assert encoded.ticks.tolist() == [0, 1, 2, 3, 4, 5]


def test_the_response_is_learnt_to_its_end_and_nothing_else_is(small_tokens):
    encoded = encode(_example(), small_tokens, num_queries=Q)
    ids = small_tokens.config
    said = np.flatnonzero(np.isin(encoded.parts, [Part.OPENING, Part.TEXT, Part.END]))
    # What has to follow each position before a response token is that token.
    assert (encoded.targets[said - 1] == encoded.ids[said]).all()
    assert encoded.ids[said[-1]] == ids.end_of_text_id
    assert small_tokens.decode(encoded.ids[said[:-1]].tolist()) == "Success: You poured the egg."
    # After end-of-text the same choice comes again: here silence.
    assert encoded.decisions[said[-1]]
    assert encoded.targets[said[-1]] == ids.vision_id
    prompt = np.flatnonzero(encoded.parts == Part.PROMPT)
    assert (encoded.targets[prompt[:-1]] == IGNORE).all()
    assert encoded.targets[prompt[-1]] == ids.vision_id
    supervised = int((encoded.targets != IGNORE).sum())
    assert supervised == 1 + 6 + len(said) + 1  # prompt's end, frames, response, end-of-text's choice


def test_a_step_that_ends_closes_with_next(small_tokens):
    message = Message(time_s=2.5, kind="mistake", text="You added too much salt.")
    conversation = coaching_step(prompt="p", first_tick=2, end_tick=6, messages=[message], step_ends=True)
    encoded = encode(conversation, small_tokens, num_queries=Q)
    assert encoded.ids[-1] == small_tokens.config.next_id
    assert encoded.targets[-2] == small_tokens.config.next_id
    assert encoded.targets[-1] == IGNORE
    silent_end = coaching_step(prompt="p", first_tick=2, end_tick=6, messages=[], step_ends=True)
    encoded = encode(silent_end, small_tokens, num_queries=Q)
    assert encoded.ids[-2:].tolist() == [small_tokens.config.response_id, small_tokens.config.next_id]


def test_a_message_before_the_start_is_due_at_the_first_frame_and_one_too_late_is_an_error():
    early = Message(time_s=0.2, kind="success", text="Done.")
    conversation = coaching_step(prompt="p", first_tick=4, end_tick=6, messages=[early], step_ends=False)
    assert conversation.items[1] == Frames(first_tick=4, count=1)
    assert isinstance(conversation.items[2], Decision)
    with pytest.raises(InputError, match="after the last frame"):
        coaching_step(
            prompt="p",
            first_tick=0,
            end_tick=4,
            messages=[Message(time_s=1.6, kind="success", text="Done.")],
            step_ends=False,
        )
    with pytest.raises(InputError, match="the coach says it"):
        coaching_step(
            prompt="p",
            first_tick=0,
            end_tick=4,
            messages=[Message(time_s=0, kind="instruction", text="Go.")],
            step_ends=False,
        )


CONVERSATIONS = [
    _example(),
    _example(step_ends=True),
    Conversation(
        items=(
            Frames(first_tick=0, count=1, loss=False),
            Text(role="user", text="What is on the board?"),
            Decision(kind="say", text="A carrot."),
        ),
        video_id="image",
    ),
    Conversation(
        items=(
            Text(role="prompt", text="Watch."),
            Text(role="prompt", text="Closely."),
            Frames(first_tick=3, count=2, loss=False),
            Frames(first_tick=5, count=2),
            Decision(kind="divergence", text="You did not follow the instruction. You cut it.", ends_step=True),
            Text(role="user", text="And now?"),
            Decision(kind="say", text="Cut.", loss=False),
            Frames(first_tick=9, count=1),
            Decision(kind="divergence", text="You are not following the instruction."),
            Decision(kind="advance", ends_step=True),
        )
    ),
    Conversation(items=(Text(role="prompt", text="Watch."), Frames(first_tick=0, count=2), Decision(choice="vision"))),
]


@pytest.mark.parametrize("conversation", CONVERSATIONS)
def test_a_conversation_comes_back_from_its_positions(small_tokens, neox_tokens, conversation):
    for tokens in (small_tokens, neox_tokens):
        encoded = encode(conversation, tokens, num_queries=Q)
        assert decode(encoded, tokens, num_queries=Q) == conversation
    assert Conversation.from_dict(conversation.to_dict()) == conversation
    with pytest.raises(InputError, match="encoded for another model"):
        decode(encoded, tokens, num_queries=Q + 1)


def test_decision_positions_are_exactly_those_before_a_choice(small_tokens):
    encoded = encode(CONVERSATIONS[3], small_tokens, num_queries=Q)
    ids = small_tokens.config
    before_choice = np.flatnonzero(np.isin(encoded.ids, [ids.vision_id, ids.response_id])) - 1
    assert np.flatnonzero(encoded.decisions).tolist() == before_choice.tolist()


def test_the_table_shows_every_position(small_tokens):
    encoded = encode(_example(), small_tokens, num_queries=Q)
    rows = list(position_rows(encoded, small_tokens, num_queries=Q))
    assert len(rows) == len(encoded) + 1
    fourth = [row for row in rows if row[2] == "visual" and row[3] == f"[{Q}/{Q}]"][3]
    assert fourth[4:] == ("<response>", "decision")
    assert [row[1] for row in rows if row[1]][1:] == ["0.0 s", "0.5 s", "1.0 s", "1.5 s", "2.0 s", "2.5 s"]
    table = position_table(encoded, small_tokens, num_queries=Q)
    assert "6 frames; decisions: 1 respond, 7 silent, 0 without target" in table
