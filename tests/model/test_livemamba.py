import json
import subprocess
import sys
import warnings
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file, save_file

from livemamba.config import DialogueConfig, LiveMambaConfig
from livemamba.conversation import coaching_step
from livemamba.dialogue.encode import encode
from livemamba.dialogue.tokens import Tokens, train_tokenizer
from livemamba.errors import InputError, MissingError
from livemamba.model.livemamba import LiveMamba, RandomWeightsWarning
from livemamba.model.mamba import MambaBackbone
from livemamba.timeline import Message

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.fixture
def sample(small_tokens, small_model):
    """An encoded step of four frames with a response, and its frames' embeddings."""
    message = Message(time_s=0.7, kind="success", text="You poured the egg.")
    conversation = coaching_step(prompt="Pour the egg.", first_tick=0, end_tick=4, messages=[message], step_ends=True)
    encoded = encode(conversation, small_tokens, num_queries=3)
    pixels = torch.randn(4, 3, 56, 56, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        frames = small_model.encode_frames(pixels)
    return torch.tensor(encoded.ids)[None], torch.tensor(encoded.visual)[None], frames


def _load(folder):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RandomWeightsWarning)
        return LiveMamba.from_pretrained(folder)


@torch.no_grad()
def test_a_sample_whole_and_cut_anywhere_gives_the_same_logits(small_model, sample):
    ids, visual, frames = sample
    whole, end = small_model(ids, visual=visual, frames=frames)
    assert whole.shape == (1, ids.shape[1], 608)
    for cuts in ([1], [5, 6], [3, 4, 11, 20], range(1, ids.shape[1])):
        state, pieces, used = None, [], 0
        for a, b in zip([0, *cuts], [*cuts, ids.shape[1]], strict=True):
            mask = visual[:, a:b]
            some = int(mask.sum())
            flat = frames.reshape(1, -1, 32)[:, used : used + some]
            logits, state = small_model(ids[:, a:b], visual=mask, frames=flat, state=state)
            pieces.append(logits)
            used += some
        torch.testing.assert_close(torch.cat(pieces, 1), whole, **CLOSE)
        torch.testing.assert_close(state.ssm, end.ssm, **CLOSE)


@torch.no_grad()
def test_frames_matter_and_stand_where_the_mask_says(small_model, sample):
    ids, visual, frames = sample
    embeds = small_model.embed(ids, visual=visual, frames=frames)
    assert torch.equal(embeds[visual], frames.reshape(-1, 32))
    assert torch.equal(embeds[~visual], small_model.backbone.embed(ids)[~visual])
    swapped, _ = small_model(ids, visual=visual, frames=frames.flip(0))
    whole, _ = small_model(ids, visual=visual, frames=frames)
    assert (swapped - whole).abs().max() > 1e-3


def test_the_seam_between_vision_and_text_is_guarded(small_model, sample):
    ids, visual, frames = sample
    shifted = visual.clone()
    shifted[0, 0] = True
    for mask, given in [(shifted, frames), (visual, frames[:3]), (None, frames), (visual, None)]:
        with pytest.raises(InputError, match=r"visual positions for .* embeddings"):
            small_model.embed(ids, visual=mask, frames=given)


def test_saved_and_loaded_it_gives_the_same_logits_in_another_process(small_model, sample, tmp_path):
    ids, visual, frames = sample
    with torch.no_grad():
        expected, _ = small_model(ids, visual=visual, frames=frames)
    folder = small_model.save_pretrained(tmp_path / "checkpoint")
    save_file({"ids": ids, "visual": visual, "frames": frames}, tmp_path / "in.safetensors")
    code = f"""
import torch
from safetensors.torch import load_file, save_file
from livemamba.model.livemamba import LiveMamba
given = load_file({str(tmp_path / "in.safetensors")!r})
model = LiveMamba.from_pretrained({str(folder)!r})
with torch.no_grad():
    logits, _ = model(given["ids"], visual=given["visual"], frames=given["frames"])
model.backbone.backbone.embeddings.weight.data[5] = 7
assert (model.backbone.lm_head.weight[5] == 7).all(), "the tables are no longer tied"
save_file({{"logits": logits}}, {str(tmp_path / "out.safetensors")!r})
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert "RANDOM WEIGHTS in vision, qformer, backbone" in run.stderr
    assert torch.equal(load_file(tmp_path / "out.safetensors")["logits"], expected)
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]


def test_a_loaded_model_is_the_saved_one(small_model, tmp_path):
    again = _load(small_model.save_pretrained(tmp_path / "c"))
    assert again.config == small_model.config
    assert again.provenance == small_model.provenance
    assert again.fingerprint() == small_model.fingerprint()
    assert not again.training
    with torch.no_grad():
        again.qformer.queries.add_(1e-3)
    assert again.fingerprint() != small_model.fingerprint()


def _rewrite(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


A_WEIGHT = "backbone.backbone.layers.0.mixer.in_proj.weight"


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda t: t.pop(A_WEIGHT), rf"1 missing \({A_WEIGHT}\)"),
        (lambda t: t.update(extra=torch.zeros(1)), r"1 unexpected \(extra\)"),
        (lambda t: t.update(renamed=t.pop(A_WEIGHT)), r"1 missing .*; 1 unexpected \(renamed\)"),
        (lambda t: t.update({A_WEIGHT: torch.zeros(3, 3)}), r"1 wrong shape .*\(3, 3\)"),
    ],
)
def test_weights_that_do_not_fit_are_refused_with_the_list(small_model, tmp_path, change, rule):
    folder = small_model.save_pretrained(tmp_path / "c")
    _rewrite(folder, change)
    with pytest.raises(InputError, match=rule):
        LiveMamba.from_pretrained(folder)


@pytest.mark.parametrize("field", ["vocab_size", "intermediate_size", "num_hidden_layers"])
def test_a_config_of_another_size_than_its_weights_is_refused_before_it_is_built(small_model, tmp_path, field):
    folder = small_model.save_pretrained(tmp_path / "checkpoint")
    card = json.loads((folder / "config.json").read_text())
    card["model"]["backbone"][field] = 2**24 if field != "num_hidden_layers" else 40
    (folder / "config.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match="do not fit LiveMamba"):
        LiveMamba.from_pretrained(folder)


def test_only_checkpoints_are_overwritten(small_model, tmp_path):
    folder = small_model.save_pretrained(tmp_path / "checkpoint")
    (folder / "generation_config.json").write_text("{}")  # a folder of transformers' has config.json and weights too
    with pytest.raises(InputError, match=r"generation_config\.json, which would be lost"):
        small_model.save_pretrained(folder, overwrite=True)


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        ({"ids": torch.zeros(1, 3)}, "ids are"),
        ({"visual": torch.ones(3, dtype=torch.bool)}, "visual is"),
        ({"visual": torch.ones(1, 3)}, "visual is"),
        ({"visual": torch.ones(1, 3, dtype=torch.bool), "frames": torch.zeros(1, 3, 31)}, "frames are"),
    ],
)
def test_wrong_shapes_and_dtypes_are_refused(small_model, arguments, rule):
    with pytest.raises(InputError, match=rule):
        small_model(**{"ids": torch.zeros(1, 3, dtype=torch.int64), **arguments})


def test_folders_that_are_no_checkpoint_are_refused_in_one_line(small_model, tmp_path):
    def edited(name, change):
        folder = small_model.save_pretrained(tmp_path / name)
        card = json.loads((folder / "config.json").read_text())
        change(card)
        (folder / "config.json").write_text(json.dumps(card))
        return folder

    def cut(name):
        folder = small_model.save_pretrained(tmp_path / name)
        data = (folder / "model.safetensors").read_bytes()
        (folder / "model.safetensors").write_bytes(data[: len(data) // 2])
        return folder

    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    broken = small_model.save_pretrained(tmp_path / "broken")
    (broken / "config.json").write_text("{")
    cases = [
        (str(tmp_path / "checkpiont"), MissingError, "does not exist"),
        (tmp_path / "empty", MissingError, "config.json, model.safetensors, tokenizer.json missing"),
        (tmp_path / "file", InputError, "is a file"),
        (broken, InputError, "not JSON"),
        (cut("cut"), InputError, "model.safetensors"),
        (edited("a", lambda card: card.update(format=2)), InputError, "has format 2"),
        (edited("b", lambda card: card.update(model_type="mamba")), InputError, "no LiveMamba config"),
        (edited("c", lambda card: card["model"].update(visoin={})), InputError, "did you mean 'vision'"),
        (edited("d", lambda card: card["model"]["backbone"].update(state_size=4)), InputError, "wrong shape"),
        (edited("e", lambda card: card.update(provenance={})), InputError, "provenance"),
        (edited("f", lambda card: card["model"]["dialogue"].update(vision_id=3)), InputError, "tokenizer uses for"),
    ]
    for folder, error, rule in cases:
        with pytest.raises(error, match=rule) as caught:
            LiveMamba.from_pretrained(folder)
        assert "\n" not in str(caught.value)


def test_saving_never_overwrites_unasked(small_model, tmp_path):
    folder = small_model.save_pretrained(tmp_path / "c")
    with pytest.raises(InputError, match="exists"):
        small_model.save_pretrained(folder)
    small_model.provenance["vision"] = "trained"
    small_model.save_pretrained(folder, overwrite=True)
    assert _load(folder).provenance["vision"] == "trained"
    other = tmp_path / "notes"
    other.mkdir()
    (other / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match=r"holds no config\.json"):
        small_model.save_pretrained(other, overwrite=True)
    assert (other / "thesis.txt").exists()


def test_parts_load_from_the_originals(small_model, small_tokens, tmp_path):
    import timm
    from transformers import MambaConfig as TheirConfig
    from transformers import MambaForCausalLM

    config = small_model.config
    vit = timm.create_model(
        config.vision.architecture, pretrained=False, img_size=56, embed_dim=24, depth=2, num_heads=2
    )
    save_file({name: tensor.contiguous() for name, tensor in vit.state_dict().items()}, tmp_path / "vit.safetensors")
    small_model.load_vision(tmp_path / "vit.safetensors")
    pixels = torch.randn(2, 3, 56, 56)
    with torch.no_grad():
        torch.testing.assert_close(small_model.vision(pixels).features, vit.eval().forward_features(pixels))

    theirs = MambaForCausalLM(
        TheirConfig(
            vocab_size=608, hidden_size=32, num_hidden_layers=3, intermediate_size=64, state_size=8, time_step_rank=4
        )
    ).eval()
    theirs.save_pretrained(tmp_path / "mamba")
    small_model.load_backbone(tmp_path / "mamba")
    ids = torch.tensor([small_tokens.encode("You poured the egg into the cup.")])
    with torch.no_grad():
        ours, _ = small_model(ids)
        # The special tokens' rows were set to the mean; everything else is as it was saved.
        torch.testing.assert_close(ours[..., :600], theirs(ids).logits[..., :600], **CLOSE)
    table = small_model.backbone.backbone.embeddings.weight
    for row in (600, 601, 602):
        torch.testing.assert_close(table[row], table[: small_tokens.size].mean(0))
    assert small_model.random_parts == ("qformer",)


def test_a_table_is_never_resized(small_model, small_tokens):
    backbone = replace(small_model.config.backbone, vocab_size=603)
    model = LiveMamba(replace(small_model.config, backbone=backbone), small_tokens)
    assert model.backbone.backbone.embeddings.weight.shape[0] == 603
    other = Tokens(train_tokenizer(["x"], 300), DialogueConfig(vision_id=605, response_id=606, next_id=607))
    with pytest.raises(InputError, match="other special ids"):
        LiveMamba(small_model.config, other)


def test_the_full_size_is_mamba_130m_with_its_own_tokenizer(neox_tokens):
    config = LiveMambaConfig()
    with torch.device("meta"):
        backbone = MambaBackbone(config.backbone)
    assert sum(weight.numel() for weight in backbone.parameters()) == 129_135_360
    assert neox_tokens.size + 3 == config.backbone.vocab_size


def test_half_weights_are_half_the_size_and_load_as_float32(small_model, tmp_path):
    whole, half = small_model.save_pretrained(tmp_path / "a"), small_model.save_pretrained(tmp_path / "b", half=True)
    sizes = [(folder / "model.safetensors").stat().st_size for folder in (whole, half)]
    assert sizes[1] < 0.7 * sizes[0]  # a model this small is a quarter names
    loaded = _load(half)
    for name, weight in small_model.state_dict().items():
        kept = loaded.state_dict()[name]
        assert kept.dtype == weight.dtype
        assert torch.equal(kept, weight.half().float() if weight.dtype == torch.float32 else weight)
    again = loaded.save_pretrained(tmp_path / "c", half=True)  # nothing more is lost
    assert (again / "model.safetensors").read_bytes() == (half / "model.safetensors").read_bytes()


def test_weights_that_float16_cannot_hold_are_refused(small_model, tmp_path):
    with torch.no_grad():
        small_model.qformer.queries[0, 0] = 1e6
    with pytest.raises(InputError, match=r"qformer.queries doesn't fit into float16"):
        small_model.save_pretrained(tmp_path / "a", half=True)
    assert not (tmp_path / "a").exists()


def test_parts_come_from_other_checkpoints(small_model, small_tokens, tmp_path):
    small_model.provenance["vision"] = "stage 0"
    folder = small_model.save_pretrained(tmp_path / "a")
    other = LiveMamba(small_model.config, small_tokens, seed=9)
    other.load_part("vision", folder)
    own, given = other.state_dict(), small_model.state_dict()
    assert all(
        torch.equal(own[name], given[name]) == name.startswith("vision")
        for name in ("vision.vit.cls_token", "qformer.queries")
    )
    assert other.provenance["vision"] == "stage 0" and other.provenance["qformer"].startswith("random")
    with pytest.raises(InputError, match="'head' is not one of vision, qformer, backbone"):
        other.load_part("head", folder)
    wider = LiveMamba(
        replace(small_model.config, qformer=replace(small_model.config.qformer, num_queries=5)), small_tokens
    )
    with pytest.raises(InputError, match="queries"):
        wider.load_part("qformer", folder)
    strange = Tokens(train_tokenizer(["other words altogether"] * 3, 400), small_model.config.dialogue)
    with pytest.raises(InputError, match="trained with another tokenizer"):
        LiveMamba(small_model.config, strange).load_part("backbone", folder)
