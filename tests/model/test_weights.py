"""The door for weights: what was saved is what is loaded, or loading fails with the differences."""

import json
import pickle

import huggingface_hub
import pytest
import torch
import transformers
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors import safe_open
from torch import nn

from livemamba.config import MambaConfig
from livemamba.errors import InputError, MissingError
from livemamba.hub import resolve_folder
from livemamba.model import weights
from livemamba.model.mamba import MambaBackbone
from livemamba.model.weights import (
    load_mamba_weights,
    load_strictly,
    read_safetensors,
    write_safetensors,
)

CONFIG = MambaConfig(
    vocab_size=61, hidden_size=32, num_hidden_layers=2, intermediate_size=64, state_size=8, time_step_rank=2
)
TABLE, HEAD = "backbone.embeddings.weight", "lm_head.weight"


@pytest.fixture(scope="module")
def original() -> transformers.MambaForCausalLM:
    torch.manual_seed(0)
    sizes = {name: getattr(CONFIG, name) for name in CONFIG.__dataclass_fields__ if name != "intermediate_size"}
    return transformers.MambaForCausalLM(transformers.MambaConfig(**sizes, expand=2)).eval()


@pytest.fixture
def folder(original, tmp_path):
    original.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def sharded(original, tmp_path):
    original.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    return tmp_path / "sharded"


def refusal(kind, call, *args, **kwargs) -> str:
    with pytest.raises(kind) as raised:
        call(*args, **kwargs)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def new_backbone() -> MambaBackbone:
    torch.manual_seed(1)
    return MambaBackbone(CONFIG)


@torch.no_grad()
def assert_same_logits(backbone, original):
    ids = torch.arange(20)[None]
    got = backbone.logits(backbone(backbone.embed(ids))[0])
    torch.testing.assert_close(got, original(ids).logits, rtol=1e-4, atol=1e-4)


def test_a_folder_of_transformers_loads_by_name(original, folder):
    backbone = new_backbone()
    load_mamba_weights(backbone, folder)
    assert_same_logits(backbone, original)
    assert backbone.lm_head.weight is backbone.backbone.embeddings.weight


def test_a_sharded_folder_loads_too(original, sharded):
    assert len(list(sharded.glob("*.safetensors"))) > 2
    backbone = new_backbone()
    load_mamba_weights(backbone, sharded)
    assert_same_logits(backbone, original)


def test_the_table_goes_by_its_older_name_too(original, folder):
    tensors = read_safetensors(folder)
    tensors["backbone.embedding.weight"] = tensors.pop(TABLE)
    write_safetensors(folder / "model.safetensors", tensors)
    backbone = new_backbone()
    load_mamba_weights(backbone, folder)
    assert_same_logits(backbone, original)


def test_what_is_saved_is_read_by_transformers_and_by_us_with_ties_stored_once(original, folder):
    backbone = new_backbone()
    load_mamba_weights(backbone, folder)
    with torch.no_grad():
        backbone.backbone.embeddings.weight[3] += 1
    write_safetensors(folder / "model.safetensors", backbone.state_dict(), {"step": "7"})
    with safe_open(folder / "model.safetensors", "pt") as file:
        assert HEAD not in file.keys() and TABLE in file.keys()  # noqa: SIM118
        assert file.metadata() == {"format": "pt", "step": "7"}
    again = new_backbone()
    load_mamba_weights(again, folder)
    assert again.lm_head.weight is again.backbone.embeddings.weight
    for name, tensor in backbone.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    assert_same_logits(again, transformers.MambaForCausalLM.from_pretrained(folder))


def test_weights_are_converted_to_the_modules_dtype(folder):
    backbone = new_backbone().double()
    load_mamba_weights(backbone, folder)
    assert {parameter.dtype for parameter in backbone.parameters()} == {torch.float64}
    assert torch.equal(backbone.lm_head.weight.float(), read_safetensors(folder)[TABLE])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"num_hidden_layers": 3}, "num_hidden_layers is 3, the backbone's is 2"),
        ({"state_size": 16}, "state_size is 16"),
        ({"layer_norm_epsilon": 1e-6}, "layer_norm_epsilon is 1e-06"),
        ({"expand": 4}, "intermediate_size is 128, the backbone's is 64"),
        ({"use_conv_bias": False}, "use_conv_bias is False"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings is False"),
        ({"hidden_act": "gelu"}, "hidden_act is 'gelu'"),
        ({"model_type": "mamba2"}, "model_type is 'mamba2'"),
    ],
)
def test_another_models_config_is_refused(folder, change, said):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    assert said in refusal(InputError, load_mamba_weights, new_backbone(), folder)


def test_a_config_that_leaves_sizes_to_transformers_is_understood(original, folder):
    config = json.loads((folder / "config.json").read_text())
    for name in ("intermediate_size", "use_bias", "tie_word_embeddings"):
        del config[name]
    (folder / "config.json").write_text(json.dumps({**config, "time_step_rank": "auto"}))
    backbone = new_backbone()
    load_mamba_weights(backbone, folder)
    assert_same_logits(backbone, original)


def test_a_size_that_the_config_lacks_is_named(folder):
    config = json.loads((folder / "config.json").read_text())
    del config["num_hidden_layers"]
    (folder / "config.json").write_text(json.dumps(config))
    assert "num_hidden_layers is 'absent'" in refusal(InputError, load_mamba_weights, new_backbone(), folder)
    (folder / "config.json").write_text("{")
    assert "not JSON" in refusal(InputError, load_mamba_weights, new_backbone(), folder)
    (folder / "config.json").unlink()
    assert "no config.json" in refusal(MissingError, load_mamba_weights, new_backbone(), folder)


def tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: torch.randn_like(tensor) for name, tensor in module.state_dict().items() if name != HEAD}


def test_differences_are_listed_and_nothing_is_loaded():
    backbone = new_backbone()
    before = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    tensors = tensors_of(backbone)
    tensors["backbone.norm.weight"] = tensors.pop("backbone.norm_f.weight")
    tensors["backbone.layers.0.mixer.D"] = torch.zeros(1)
    tensors["backbone.layers.1.mixer.D"] = torch.zeros(64, dtype=torch.long)
    said = refusal(InputError, load_strictly, backbone, tensors, source="old.safetensors")
    assert said.startswith("old.safetensors: the weights do not fit MambaBackbone: ")
    assert "1 missing (backbone.norm_f.weight)" in said
    assert "1 unexpected (backbone.norm.weight)" in said
    assert "backbone.layers.0.mixer.D (1,) of float32, needed (64,) of float32" in said
    assert "backbone.layers.1.mixer.D (64,) of int64" in said
    assert all(torch.equal(tensor, before[name]) for name, tensor in backbone.state_dict().items())


def test_long_lists_are_shortened():
    said = refusal(InputError, load_strictly, new_backbone(), {}, source="here")
    assert "22 missing" in said and "and 14 more" in said
    assert said.count("backbone.") == 8


def test_names_are_translated_and_must_stay_apart():
    backbone = new_backbone()
    wanted = tensors_of(backbone)
    load_strictly(
        backbone,
        {f"model.{name}": tensor for name, tensor in wanted.items()},
        source="here",
        rename=lambda name: name.removeprefix("model."),
    )
    assert all(torch.equal(backbone.state_dict()[name], tensor) for name, tensor in wanted.items())
    said = refusal(InputError, load_strictly, backbone, wanted, source="here", rename=lambda name: "one")
    assert "several weights go by one name" in said


def test_tied_names_may_both_be_there_if_they_agree():
    backbone = new_backbone()
    tensors = tensors_of(backbone)
    load_strictly(backbone, {**tensors, HEAD: tensors[TABLE].clone()}, source="here")
    assert torch.equal(backbone.backbone.embeddings.weight, tensors[TABLE])
    only_head = {name: tensor for name, tensor in tensors.items() if name != TABLE}
    load_strictly(backbone, {**only_head, HEAD: tensors[TABLE] + 1}, source="here")
    assert torch.equal(backbone.backbone.embeddings.weight, tensors[TABLE] + 1)
    said = refusal(InputError, load_strictly, backbone, {**tensors, HEAD: tensors[TABLE] + 1}, source="here")
    assert "1 tied but different" in said and TABLE in said and HEAD in said
    assert "1 missing" in refusal(InputError, load_strictly, backbone, only_head, source="here")


def test_buffers_are_weights_too():
    norm = nn.BatchNorm1d(3)
    tensors = {name: tensor + 1 for name, tensor in norm.state_dict().items()}
    load_strictly(norm, tensors, source="here")
    assert norm.num_batches_tracked == 1 and torch.equal(norm.running_mean, torch.ones(3))


def test_a_missing_shard_is_named(sharded):
    (sharded / "model-00002-of-00005.safetensors").unlink()
    assert "lacks 1 of 5 shards: model-00002-of-00005.safetensors" in refusal(MissingError, read_safetensors, sharded)


def test_an_index_that_does_not_agree_is_refused(sharded):
    file = sharded / "model.safetensors.index.json"
    index = json.loads(file.read_text())
    first = index["weight_map"].pop(TABLE)
    file.write_text(json.dumps(index))
    assert f"{TABLE} in {first}" in refusal(InputError, read_safetensors, sharded)
    index["weight_map"][TABLE] = "../elsewhere.safetensors"
    file.write_text(json.dumps(index))
    assert "outside its folder" in refusal(InputError, read_safetensors, sharded)
    for content in ("{", "[]", '{"weight_map": {}}', '{"weight_map": {"a": 1}}'):
        file.write_text(content)
        refusal(InputError, read_safetensors, sharded)


@pytest.mark.parametrize("damage", [lambda raw: b"", lambda raw: raw[: len(raw) // 2], lambda raw: b"version https://"])
def test_a_damaged_file_is_refused_by_name(folder, damage):
    file = folder / "model.safetensors"
    file.write_bytes(damage(file.read_bytes()))
    assert str(file) in refusal(InputError, read_safetensors, folder)


def test_pickles_are_never_opened(tmp_path):
    class Trap:
        def __reduce__(self):
            return (tmp_path.joinpath("sprung").mkdir, ())

    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps(Trap()))
    assert "pytorch_model.bin" in refusal(InputError, read_safetensors, tmp_path)
    assert "pickle can run any code" in refusal(InputError, read_safetensors, tmp_path / "pytorch_model.bin")
    assert not (tmp_path / "sprung").exists()


def test_weights_that_are_not_there_are_named(tmp_path):
    assert str(tmp_path / "no") in refusal(MissingError, read_safetensors, tmp_path / "no")
    assert "neither model.safetensors nor" in refusal(MissingError, read_safetensors, tmp_path)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "deep" / "w.safetensors"
    write_safetensors(file, {"a": torch.ones(2)})

    def half_done(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(weights, "save_file", half_done)
    with pytest.raises(OSError, match="disk full"):
        write_safetensors(file, {"a": torch.zeros(2)})
    assert torch.equal(read_safetensors(file)["a"], torch.ones(2))
    assert [found.name for found in file.parent.iterdir()] == ["w.safetensors"]


def test_views_and_transposed_tensors_are_written_as_they_look(tmp_path):
    whole = torch.arange(12.0).reshape(3, 4)
    tensors = {"row": whole[1], "turned": whole.t(), "whole": whole, "empty": whole[:0], "none": whole[:0]}
    write_safetensors(tmp_path / "w.safetensors", tensors)
    found = read_safetensors(tmp_path / "w.safetensors")
    assert set(found) == set(tensors)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.fixture
def hub(monkeypatch):
    """A hub that answers with what it was asked, and a list of the questions."""
    asked = []

    def snapshot_download(name, *, revision, allow_patterns):
        asked.append((name, revision, allow_patterns))
        return f"/cache/{name}"

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_a_folder_that_is_there_is_local(tmp_path, monkeypatch, hub):
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("org/name", "./org/name", "org/name/", "~/org/name", tmp_path / "org" / "name", "org"):
        assert resolve_folder(name).resolve().is_relative_to(tmp_path)
    assert not hub


@pytest.mark.parametrize(
    "name",
    [
        "./name",
        "../org/name",
        "/org/name",
        "~/name",
        "~nobody-here/name",
        "a/b/c",
        "org/",
        "org/name/",
        "name",
        "or g/name",
        "",
    ],
)
def test_what_looks_like_a_path_is_never_asked_of_the_hub(name, tmp_path, monkeypatch, hub):
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "does not exist" in refusal(MissingError, resolve_folder, name)
    assert not hub


def test_a_path_object_and_a_file_are_local(tmp_path, monkeypatch, hub):
    monkeypatch.chdir(tmp_path)
    refusal(MissingError, resolve_folder, tmp_path.relative_to(tmp_path) / "org" / "name")
    (tmp_path / "file").touch()
    assert "is a file" in refusal(InputError, resolve_folder, "file")
    assert "revision v1 is" in refusal(InputError, resolve_folder, tmp_path, revision="v1")
    assert not hub


def test_a_hub_id_fetches_safetensors_json_and_tokenizer_only(hub):
    assert str(resolve_folder("state-spaces/mamba-130m-hf", revision="v1")) == "/cache/state-spaces/mamba-130m-hf"
    ((name, revision, patterns),) = hub
    assert (name, revision) == ("state-spaces/mamba-130m-hf", "v1")
    assert "*.safetensors" in patterns and "*.json" in patterns
    assert not any("bin" in pattern or pattern == "*" for pattern in patterns)


@pytest.mark.parametrize(
    "error",
    [
        LocalEntryNotFoundError("Cannot find it.\nMore lines."),
        huggingface_hub.errors.OfflineModeIsEnabled("offline"),
        huggingface_hub.errors.HFValidationError("bad name"),
        huggingface_hub.errors.HfHubHTTPError.__mro__[1]("timed out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_hub_that_fails_is_one_line_that_says_the_folder_is_not_there_either(monkeypatch, error):
    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    said = refusal(MissingError, resolve_folder, "org/nmae", revision="v2")
    assert "no folder org/nmae here" in said and "revision v2" in said
    assert str(error).splitlines()[0].rstrip(".") in said
