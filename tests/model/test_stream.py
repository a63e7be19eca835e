import copy
import json
import subprocess
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch

from livemamba.config import DecodingConfig, ThresholdConfig
from livemamba.conversation import coaching_step
from livemamba.dialogue.decode import Decoder
from livemamba.dialogue.encode import encode
from livemamba.errors import InputError, MissingError
from livemamba.model.livemamba import LiveMamba, RandomWeightsWarning
from livemamba.model.stream import Stream
from livemamba.ticks import Frame
from livemamba.video.preprocess import preprocess

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
SILENT = DecodingConfig(thresholds=ThresholdConfig(success=2, mistake=2, divergence=2, advance=2, say=2))
# Random weights give each kind about its share of half; low thresholds make them speak now and then.
TALKATIVE = DecodingConfig(
    thresholds=ThresholdConfig(success=0.0, mistake=2, divergence=2, advance=2), max_response_tokens=6
)


def _whole(model, ids, frames):
    """Logits of all positions in one pass; -1 stands for a frame's embedding. The frames are encoded apart."""
    pixels = preprocess(
        [frame.pixels for frame in frames],
        size=model.config.vision.image_size,
        mean=model.vision.mean,
        std=model.vision.std,
    )
    ids = torch.tensor([ids])
    with torch.no_grad():
        logits, state = model(ids.clamp_min(0), visual=ids == -1, frames=model.encode_frames(pixels))
    return logits[0], state


@pytest.fixture
def written(monkeypatch):
    """The token ids of every response, as they are generated: random ones don't survive being text."""
    written = []
    generate = Decoder._generate

    def spy(self, opening, avoided):
        result = generate(self, opening, avoided)
        written.append(result[0])
        return result

    monkeypatch.setattr(Decoder, "_generate", spy)
    return written


def test_frame_by_frame_equals_the_whole_sample(small_model, make_frames, written):
    """The streaming contract, with a response in the middle, forced to what the stream itself wrote."""
    frames = make_frames(5)
    stream = Stream(small_model, decoding=SILENT)
    stream.prompt("Pour the egg.")
    for frame in frames[:3]:
        assert stream.see(frame) == []
    stream.decoder.config = replace(TALKATIVE, max_responses_per_frame=1)
    (said,) = stream.see(frames[3])
    assert (said.kind, said.ends_step) == ("success", False)
    stream.decoder.config = SILENT
    stream.see(frames[4])

    tokens, special = small_model.tokens, small_model.tokens.config
    frame_ids = [special.vision_id, -1, -1, -1]
    response = [special.response_id, *tokens.openings["success"][0], *written[0], special.end_of_text_id]
    ids = [*tokens.encode("Pour the egg."), *frame_ids * 4, *response, *frame_ids]
    logits, state = _whole(small_model, ids, frames)
    torch.testing.assert_close(stream._logits, logits[-1], **CLOSE)
    torch.testing.assert_close(stream.state.ssm, state.ssm, **CLOSE)
    torch.testing.assert_close(stream.state.conv, state.conv, **CLOSE)


def test_what_the_stream_reads_is_what_training_encodes(small_model, make_frames):
    frames = make_frames(3)
    stream = Stream(small_model, decoding=SILENT)
    stream.prompt("Pour the egg.")
    for frame in frames:
        stream.see(frame)
    conversation = coaching_step(prompt="Pour the egg.", first_tick=0, end_tick=3, messages=[], step_ends=False)
    encoded = encode(conversation, small_model.tokens, num_queries=3)
    logits, _ = _whole(small_model, np.where(encoded.visual, -1, encoded.ids).tolist(), frames)
    assert encoded.decisions[-1]
    torch.testing.assert_close(stream._logits, logits[-1], **CLOSE)


def test_per_step_forgets_and_never_goes_on(small_model, make_frames):
    early, late = make_frames(3), make_frames(2, first_tick=3, seed=5)
    fresh = Stream(small_model, decoding=SILENT)
    fresh.prompt("Cut.")
    for frame in late:
        fresh.see(frame)
    for policy, same in [("per_step", True), ("never", False)]:
        stream = Stream(small_model, reset=policy, decoding=SILENT)
        stream.prompt("Pour.")
        for frame in early:
            stream.see(frame)
        stream.prompt("Cut.")
        for frame in late:
            stream.see(frame)
        assert torch.equal(stream.state.ssm, fresh.state.ssm) is same


def test_asking_and_peeking_change_nothing(small_model, make_frames):
    frames = make_frames(6)
    quiet, asked = Stream(small_model, decoding=TALKATIVE), Stream(small_model, decoding=TALKATIVE)
    for stream in (quiet, asked):
        stream.prompt("Pour.")
    for frame in frames:
        if asked.step_over:
            break
        first = asked.ask("What is on the board?")
        assert asked.ask("What is on the board?") == first
        assert first.kind == "say" and first.text
        asked.peek()
        assert asked.see(frame) == quiet.see(frame)
        assert torch.equal(asked.state.ssm, quiet.state.ssm)
    reading = Stream(small_model, decoding=SILENT)
    reading.prompt("Pour.")
    assert sum(reading.peek().kinds.values()) == pytest.approx(1)


def test_two_streams_never_touch(small_model, make_frames):
    frames = make_frames(4)
    alone = Stream(small_model, decoding=SILENT)
    alone.prompt("Pour.")
    expected = []
    for frame in frames:
        alone.see(frame)
        expected.append(alone.state.ssm.clone())
    first, second = Stream(small_model, decoding=SILENT), Stream(small_model, decoding=TALKATIVE)
    first.prompt("Pour.")
    second.prompt("Something else entirely.")
    for frame, other, state in zip(frames, make_frames(4, seed=9), expected, strict=True):
        first.see(frame)
        if not second.step_over:
            second.see(other)
        assert torch.equal(first.state.ssm, state)


def test_a_saved_session_continues_exactly_in_another_process(small_model, make_frames, tmp_path):
    frames = make_frames(6)
    checkpoint = small_model.save_pretrained(tmp_path / "checkpoint")
    np.savez(tmp_path / "frames.npz", *[frame.pixels for frame in frames])
    unbroken = Stream(small_model, decoding=TALKATIVE)
    unbroken.prompt("Pour.")
    for frame in frames[:3]:
        unbroken.see(frame)
    unbroken.save(tmp_path / "session")
    said = [[response.text for response in unbroken.see(frame)] for frame in frames[3:]]
    code = f"""
import json, warnings
import numpy as np
warnings.simplefilter("ignore")
from livemamba.model.livemamba import LiveMamba
from livemamba.model.stream import Stream
from livemamba.ticks import Frame
stream = Stream.load({str(tmp_path / "session")!r}, LiveMamba.from_pretrained({str(checkpoint)!r}))
pixels = list(np.load({str(tmp_path / "frames.npz")!r}).values())
said = [[r.text for r in stream.see(Frame(tick=t, time_s=t / 2, pixels=pixels[t]))] for t in (3, 4, 5)]
print(json.dumps([said, stream.state.ssm.flatten().tolist()]))
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    there, state = json.loads(run.stdout)
    assert there == said
    assert state == unbroken.state.ssm.flatten().tolist()


def test_a_session_of_another_model_or_a_damaged_one_is_refused(small_model, make_frames, tmp_path):
    stream = Stream(small_model)
    stream.prompt("Pour.")
    folder = stream.save(tmp_path / "session")
    stream.save(folder)  # replaces its own kind
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomWeightsWarning)
        other = LiveMamba(small_model.config, small_model.tokens, seed=2)
    with pytest.raises(InputError, match="another model"):
        Stream.load(folder, other)
    with pytest.raises(MissingError, match=r"stream\.json is missing"):
        Stream.load(tmp_path / "nowhere", small_model)
    (folder / "state.safetensors").write_bytes(b"garbage")
    with pytest.raises(InputError, match=r"state\.safetensors"):
        Stream.load(folder, small_model)
    (folder / "stream.json").write_text("{}")
    with pytest.raises(InputError, match="no session of format"):
        Stream.load(folder, small_model)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("x")
    with pytest.raises(InputError, match=r"holds no stream\.json"):
        stream.save(tmp_path / "notes")


def test_order_is_kept(small_model, make_frames):
    frames = make_frames(3)
    stream = Stream(small_model, decoding=SILENT)
    with pytest.raises(InputError, match="give a prompt"):
        stream.see(frames[0])
    with pytest.raises(InputError, match="give a prompt"):
        stream.peek()
    with pytest.raises(InputError, match="needs a text"):
        stream.prompt("")
    stream.prompt("Pour.")
    stream.see(frames[1])
    for frame in (frames[0], frames[1]):
        with pytest.raises(InputError, match="forward in time"):
            stream.see(frame)
    stream.see(Frame(tick=9, time_s=4.5, pixels=frames[2].pixels))  # a live source may leave ticks out
    assert stream.tick == 9
    with pytest.raises(InputError, match="neither per_step nor never"):
        Stream(small_model, reset="sometimes")
    with pytest.raises(InputError, match="must be some of"):
        Stream(small_model, kinds=("shout",))


def test_after_the_step_the_next_prompt_is_due(small_model, make_frames):
    over = DecodingConfig(thresholds=ThresholdConfig(success=2, mistake=2, divergence=2, advance=0))
    stream = Stream(small_model, decoding=over)
    stream.prompt("Pour.")
    frames = make_frames(3)
    (said,) = stream.see(frames[0])
    assert (said.kind, said.text, said.ends_step) == ("advance", "", True)
    assert stream.step_over
    with pytest.raises(InputError, match="no open step"):
        stream.see(frames[1])
    stream.prompt("Cut.")
    stream.see(frames[1])


def test_all_silent_and_all_speaking_thresholds_both_behave(small_model, make_frames):
    """Pitfall P1, in small: over 60 frames state and cost in positions stay what they are."""
    silent, speaking = Stream(small_model, decoding=SILENT), Stream(small_model, decoding=TALKATIVE)
    for stream in (silent, speaking):
        stream.prompt("Pour.")
    size = silent.state.num_bytes
    for frame in make_frames(60):
        assert silent.see(frame) == []
        if speaking.step_over:
            speaking.prompt("Pour.")
        responses = speaking.see(frame)
        assert 1 <= len(responses) <= 2
        assert all(response.text for response in responses)
    assert silent.state.num_bytes == speaking.state.num_bytes == size


def test_an_answer_is_greedy_after_the_question(small_model, make_frames, written):
    frames = make_frames(2)
    stream = Stream(small_model, reset="never", decoding=SILENT)
    stream.prompt("Watch.")
    for frame in frames:
        stream.see(frame)
    stream.ask("What did I cut?")
    tokens, special = small_model.tokens, small_model.tokens.config
    before = [*tokens.encode("Watch."), *[special.vision_id, -1, -1, -1] * 2, *tokens.encode("What did I cut?")]
    logits, _ = _whole(small_model, [*before, special.response_id, *written[0]], frames)
    for place, token_id in enumerate(written[0]):
        legal = logits[len(before) + place].clone()
        legal[tokens.size :] = float("-inf")
        legal[special.padding_id] = float("-inf")
        if not tokens.decode(written[0][:place]).strip():
            legal[special.end_of_text_id] = float("-inf")
        assert int(legal.argmax()) == token_id


def test_the_logits_of_a_prompt_are_not_kept(small_model):
    """A view of them would hold memory that grows with the prompt for as long as the step lasts."""
    stream = Stream(small_model, decoding=SILENT)
    stream.prompt("Now chop one scallion. " * 50)
    assert stream._logits.untyped_storage().nbytes() == 4 * small_model.config.backbone.vocab_size


def test_a_model_in_training_mode_is_refused(small_model, make_frames):
    stream = Stream(small_model, decoding=SILENT)
    stream.prompt("Watch.")
    small_model.train()
    for use in (lambda: Stream(small_model), lambda: stream.see(make_frames(1)[0]), lambda: stream.prompt("Watch.")):
        with pytest.raises(InputError, match=r"call model\.eval\(\)"):
            use()
    small_model.eval()
    assert stream.see(make_frames(1)[0]) == []


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_a_model_of_another_precision_watches_too(small_model, make_frames, dtype):
    expected = Stream(small_model, decoding=SILENT)
    expected.prompt("Watch.")
    other = Stream(copy.deepcopy(small_model).to(dtype), decoding=SILENT)
    other.prompt("Watch.")
    for frame in make_frames(3):
        expected.see(frame)
        other.see(frame)
    torch.testing.assert_close(other._logits.float(), expected._logits, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("change", [{"kinds": 5}, {"kinds": [[]]}, {"tick": "a"}, {"format": 2}, {"reset": []}])
def test_a_session_file_that_was_changed_is_one_line(small_model, tmp_path, change):
    Stream(small_model).save(tmp_path / "session")
    file = tmp_path / "session" / "stream.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
    with pytest.raises(InputError):
        Stream.load(tmp_path / "session", small_model)


def test_ticks_that_are_numpy_integers_can_be_saved(small_model, make_frames, tmp_path):
    stream = Stream(small_model, decoding=SILENT)
    stream.prompt("Watch.")
    stream.see(Frame(tick=np.int64(3), time_s=1.5, pixels=make_frames(1)[0].pixels))
    stream.save(tmp_path / "session")
    assert Stream.load(tmp_path / "session", small_model).tick == 3
