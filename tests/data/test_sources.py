from dataclasses import replace

import numpy as np
import pytest
import torch

from livemamba.config import config_from_dict
from livemamba.conversation import coaching_step
from livemamba.data.cache import CacheKey, FeatureCache
from livemamba.data.collate import Target, collate, target_groups
from livemamba.data.simkitchen import read_step_clips
from livemamba.data.sources import AugmentConfig, ClipSource
from livemamba.dialogue.encode import IGNORE, encode
from livemamba.errors import InputError, MissingError
from livemamba.timeline import Message

KEY = CacheKey(encoder="abc", preprocessing="squash", keep=3, dominant=2, width=4)


class Ticks:
    """Features that say which tick they are of."""

    def read(self, video_id, ticks):
        return torch.tensor([float(tick) for tick in ticks]).view(-1, 1, 1).expand(-1, 3, 4)

    def length(self, video_id):
        return 10_000


def sample(tokens, kind="success", *, ticks=3, first=0):
    text = "" if kind == "advance" else "You did it."
    message = Message(time_s=(first + ticks - 2) / 2, kind=kind, text=text)
    conversation = coaching_step(
        prompt="Do it.", first_tick=first, end_tick=first + ticks, messages=[message], step_ends=True, video_id="v"
    )
    return encode(conversation, tokens, num_queries=2)


def test_groups_name_what_each_position_has_to_get_right(small_tokens):
    encoded = sample(small_tokens, "mistake")
    groups = target_groups(encoded, small_tokens)
    assert ((groups != Target.NONE) == (encoded.targets != IGNORE)).all()
    assert [Target(group).name for group in groups[encoded.decisions]] == [
        "SILENT",
        "SILENT",
        "MISTAKE",
        "SILENT",
        "ADVANCE",
    ]
    assert (groups == Target.KIND).sum() == 2  # after each <response>: "Feedback:" and <next>
    assert (encoded.ids[groups == Target.KIND] == small_tokens.config.response_id).all()


def test_a_batch_is_its_samples_padded(small_tokens):
    one, other = sample(small_tokens), sample(small_tokens, ticks=5, first=2)
    features = Ticks()
    batch = collate([(each, features.read("v", each.ticks)) for each in (one, other)], small_tokens)
    assert batch.ids.shape == (2, max(len(one), len(other)))
    assert batch.valid.sum(1).tolist() == [len(one), len(other)]
    assert batch.visual.sum() == 2 * 8 and batch.tokens[:, 0, 0].tolist() == [0, 1, 2, 2, 3, 4, 5, 6]
    for row, each in enumerate((one, other)):
        assert batch.targets[row, : len(each)].tolist() == each.targets.tolist()
        assert (batch.targets[row, len(each) :] == IGNORE).all()
        assert (batch.ids[row, len(each) :] == small_tokens.config.padding_id).all()


def test_features_of_other_frames_are_refused(small_tokens):
    encoded = sample(small_tokens)
    with pytest.raises(InputError, match="features of 2 frames for 3"):
        collate([(encoded, torch.zeros(2, 3, 4))], small_tokens)
    with pytest.raises(InputError, match="no samples"):
        collate([], small_tokens)


@pytest.fixture
def make_source(tiny_corpus, small_tokens):
    clips = [(clip, Ticks()) for clip in read_step_clips(tiny_corpus, "train")]

    def make(seed=0, groups_per_batch=4, **augment):
        config = AugmentConfig(**{"instructions": "contrasted", "jitter_ticks": 4, **augment})
        return ClipSource(
            clips,
            config=config,
            dialogue=small_tokens.config,
            tokens=small_tokens,
            num_queries=2,
            groups_per_batch=groups_per_batch,
            seed=seed,
            pool=2,
        )

    return make


def same(one, other):
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in vars(one))


def test_a_batch_follows_from_seed_and_step_alone(make_source):
    source, again = make_source(windows=0.5), make_source(windows=0.5)
    for step in (5, 0, 17):  # any order, as after a resume
        assert same(source.batch(step, 0, 1), again.batch(step, 0, 1))
    assert not same(source.batch(0, 0, 1), make_source(seed=1, windows=0.5).batch(0, 0, 1))


def test_an_epoch_shows_every_clip_once(make_source):
    source = make_source(instructions="given", jitter_ticks=0)
    seen = [source.group(place)[0][0] for place in range(len(source.clips))]
    wanted = sorted((clip.video_id, clip.first_tick) for clip, _ in source.clips)
    assert sorted((one.video_id, int(one.ticks[0])) for one in seen) == wanted
    other = [source.group(len(source.clips) + place)[0][0] for place in range(len(source.clips))]
    assert [one.video_id for one in seen] != [one.video_id for one in other]


def test_processes_share_a_batch_and_pairs_stay_together(make_source):
    source = make_source()
    whole = source.batch(3, 0, 1)
    parts = [source.batch(3, rank, 2) for rank in range(2)]
    assert sum(len(part.ids) for part in parts) == len(whole.ids)
    assert sum(int(part.visual.sum()) for part in parts) == int(whole.visual.sum())
    rows = [(source.group(place)[0]) for place in range(8)]
    sizes = {len(group) for group in rows}
    assert sizes <= {1, 2} and 2 in sizes  # a clip with its opposite, or alone if it has none
    with pytest.raises(InputError, match="for 9 processes"):
        source.batch(0, 0, 9)


def test_a_misspelt_augmentation_is_refused():
    with pytest.raises(InputError, match="did you mean 'windows'"):
        config_from_dict(AugmentConfig, {"windwos": 1.0}, where="config")


def test_windows_are_short(make_source):
    source = make_source(windows=1.0, window_frames=2)
    groups = [source.group(place)[0] for place in range(10)]
    assert max(len(encoded.ticks) for group in groups for encoded in group) <= 2


def test_long_clips_keep_their_end(make_source):
    whole = make_source(instructions="given", jitter_ticks=0)
    short = make_source(instructions="given", jitter_ticks=0, most_frames=5)
    for place in range(8):
        (one,), (other,) = whole.group(place)[0], short.group(place)[0]
        assert other.ticks.tolist() == one.ticks.tolist()[-5:]
        assert other.kinds[-1] == one.kinds[-1]


def test_cache_gives_back_what_it_keeps(tmp_path):
    cache = FeatureCache(tmp_path / "cache", KEY)
    tokens = torch.randn(7, 3, 4)
    cache.write("1_2", tokens)
    assert "1_2" in cache and "1_3" not in cache and cache.length("1_2") == 7
    read = FeatureCache(tmp_path / "cache", KEY).read("1_2", [5, 2, 2])
    assert torch.equal(read, tokens.half()[[5, 2, 2]])


def test_cache_refuses_what_does_not_fit(tmp_path):
    cache = FeatureCache(tmp_path / "cache", KEY)
    with pytest.raises(InputError, match=r"needed: \(T, 3, 4\)"):
        cache.write("v", torch.zeros(7, 3, 5))
    with pytest.raises(InputError, match="float16"):
        cache.write("v", torch.full((2, 3, 4), 1e6))
    assert "v" not in cache
    cache.write("v", torch.zeros(7, 3, 4))
    with pytest.raises(InputError, match="ticks 3 to 7 of 7"):
        cache.read("v", [3, 7])
    with pytest.raises(MissingError, match="cache the features of w"):
        cache.read("w", [0])
    with pytest.raises(InputError, match="encoder differ"):
        FeatureCache(tmp_path / "cache", replace(KEY, encoder="other"))
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="no feature cache"):
        FeatureCache(tmp_path / "other", KEY)
    assert np.isfinite(cache.read("v", [0]).numpy()).all()
