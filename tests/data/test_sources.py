from dataclasses import replace

import numpy as np
import pytest
import torch

from livemamba.config import config_from_dict
from livemamba.conversation import Conversation, Decision, Text, coaching_step
from livemamba.data.augment.counterfactual import opposite_fields
from livemamba.data.cache import CacheKey, FeatureCache, NoFeatures, lacking
from livemamba.data.collate import Target, collate, target_groups
from livemamba.data.simkitchen import read_step_clips
from livemamba.data.sources import NO_FIELD, AugmentConfig, ClipSource, augmented
from livemamba.dialogue.encode import IGNORE, encode
from livemamba.errors import InputError, MissingError
from livemamba.timeline import Message

KEY = CacheKey(encoder="abc", preprocessing="squash", keep=3, dominant=2, width=4)


class Ticks:
    """Features that say which tick they are of."""

    def read(self, video_id, ticks):
        return torch.tensor([float(tick) for tick in ticks]).view(-1, 1, 1).expand(len(ticks), 3, 4)

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
    frames = features.read("v", range(7))
    batch = collate([(each, [int(tick) for tick in each.ticks]) for each in (one, other)], frames, small_tokens)
    assert batch.ids.shape == (2, max(len(one), len(other)))
    assert batch.valid.sum(1).tolist() == [len(one), len(other)]
    assert batch.visual.sum() == 2 * 8 and batch.tokens[batch.frames, 0, 0].tolist() == [0, 1, 2, 2, 3, 4, 5, 6]
    for row, each in enumerate((one, other)):
        assert batch.targets[row, : len(each)].tolist() == each.targets.tolist()
        assert (batch.targets[row, len(each) :] == IGNORE).all()
        assert (batch.ids[row, len(each) :] == small_tokens.config.padding_id).all()


def test_features_of_other_frames_are_refused(small_tokens):
    encoded = sample(small_tokens)
    with pytest.raises(InputError, match="features of 2 frames for 3"):
        collate([(encoded, [0, 1])], torch.zeros(3, 3, 4), small_tokens)
    with pytest.raises(InputError, match="no samples"):
        collate([], torch.zeros(0, 3, 4), small_tokens)


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


def test_groups_of_conversations_are_taken_as_they_are_and_stay_together(make_source, small_tokens):
    source = make_source()
    clip = next(clip for clip, _ in source.clips if clip.counterfactuals)
    pair = tuple(one.conversation(small_tokens.config) for one in (clip.right(), clip.under(clip.counterfactuals[0])))
    text = Conversation(items=(Text(role="user", text="And now?"), Decision(kind="say", text="Wait.")))
    source.clips = [(pair, Ticks()), ((text,), Ticks()), (clip, Ticks())]
    groups = [source.group(place)[0] for place in range(6)]
    assert sorted(len(group) for group in groups) == [1, 1, 2, 2, 2, 2]  # the clip is contrasted, so it makes two
    assert any(group[0].ids.tolist() == encode(pair[0], small_tokens, num_queries=2).ids.tolist() for group in groups)
    assert sum(len(group[0].ticks) == 0 for group in groups) == 2
    for rank in range(4):
        part = source.batch(0, rank, 4)
        assert len(part.ids) in (1, 2)
        assert len(part.ids) == 1 or part.visual.sum(1).tolist() == [int(part.visual[0].sum())] * 2


def test_a_clip_under_two_instructions_is_looked_at_once(make_source):
    source = make_source(windows=0.5)
    batch = source.batch(0, 0, 1)
    assert len(batch.tokens) < len(batch.frames)
    shown = [tick for group in source._pool(0)[0] for encoded in group[0] for tick in encoded.ticks.tolist()]
    assert batch.tokens[batch.frames, 0, 0].tolist() == shown


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


@pytest.fixture
def fields(make_source):
    """Every field of the clips, each as likely as another."""
    clips = [clip for clip, _ in make_source().clips]
    return dict.fromkeys(sorted({name for clip in clips for name in opposite_fields(clip) or (NO_FIELD,)}), 1.0)


@pytest.mark.parametrize("windows", [0.0, 1.0])
def test_fields_are_drawn_as_often_as_asked(make_source, small_tokens, fields, windows):
    rare = next(name for name in fields if name != NO_FIELD)
    source = make_source(fields=fields | {rare: len(fields) - 1.0}, windows=windows)
    drawn = [source._drawn(place) for place in range(400)]
    assert sum(name == rare for _, name in drawn) == pytest.approx(200, abs=40)
    assert (
        source.group(7)[0][0].ids.tolist()
        == make_source(fields=fields | {rare: len(fields) - 1.0}, windows=windows).group(7)[0][0].ids.tolist()
    )
    # A group is the clip's right instruction and one that is opposite by the drawn field.
    for place, (number, name) in enumerate(drawn[:20]):
        clip = source.clips[number][0]
        allowed = [
            clip.right(),
            *(one for each in clip.counterfactuals if each.field == name for one in [clip.under(each)]),
        ]
        prompts = [str(one.conversation(small_tokens.config).items[0]) for one in allowed]
        given = augmented(clip, source.config, np.random.default_rng((0, 1, place)), name)
        assert [
            str(one.conversation(small_tokens.config).items[0]) in prompts[at:] for at, one in enumerate(given)
        ] == [
            True,
            True,
        ]
        assert len(source.group(place)[0]) == 2


def test_a_field_that_no_clip_has_is_told_and_one_left_out_is_refused(make_source, fields, caplog):
    source = make_source(fields=fields | {"colour": 1.0})
    assert "no clip of colour in this corpus" in caplog.text
    assert {name for _, name in map(source._drawn, range(50))} <= {*fields, None}
    with pytest.raises(InputError, match=r"has no chance for .*; the corpora have such clips"):
        make_source(fields=dict(list(fields.items())[1:]))
    with pytest.raises(InputError, match="instructions: contrasted"):
        config_from_dict(AugmentConfig, {"instructions": "given", "fields": {"what": 1.0}}, where="config")


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
    assert cache.read("of no video", []).shape == (0, 3, 4)


def test_what_a_cache_lacks_is_known_without_a_model(tmp_path):
    cache = FeatureCache(tmp_path / "cache", KEY)
    cache.write("a", torch.zeros(7, 3, 4))
    cache.write("b", torch.zeros(7, 3, 4))
    assert lacking(cache.folder, {"a": 7, "b": 8, "c": 1}) == ["b (7 of 8 ticks)", "c"]


def test_where_no_features_are_no_frame_is():
    features = NoFeatures(keep=3, width=4)
    assert features.read("", []).shape == (0, 3, 4) and features.length("") == 0
    with pytest.raises(InputError, match="v: frames are wanted"):
        features.read("v", [0])


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
