from pathlib import Path

import pytest

from livemamba.config import DEFAULT_PROMPTS, LiveMambaConfig, config_from_dict, config_to_dict, load_config
from livemamba.errors import InputError, MissingError

CONFIGS = Path(__file__).parent.parent / "configs" / "model"


def test_the_papers_model_is_the_default():
    assert load_config(LiveMambaConfig, CONFIGS / "livemamba_130m.yaml") == LiveMambaConfig()


@pytest.mark.parametrize("name", ["livemamba_130m.yaml", "tiny.yaml"])
def test_a_config_comes_back_from_its_plain_form(name):
    config = load_config(LiveMambaConfig, CONFIGS / name)
    assert config_from_dict(LiveMambaConfig, config_to_dict(config), where="again") == config


@pytest.mark.parametrize(
    ("override", "rule"),
    [
        ("vision.image_sze=3", "unknown key 'vision.image_sze'; did you mean 'image_size'"),
        ("decoding.thresholds.mistakes=1", "did you mean 'mistake'"),
        ("backbon=1", "did you mean 'backbone'"),
        ("vision.image_size=big", "vision.image_size: .*got 'big'"),
        ("vision.image_size=0", "vision.image_size: .*greater than 0"),
        ("vision.frozen=1", "valid boolean"),
        ("vision=3", "vision: "),
        ("qformer.hidden_size=100", "no multiple of 8 heads"),
        ("pruning.dominant=60", "more than keep"),
        ("dialogue.vision_id=2000", "1024 rows"),
        ("dialogue.padding_id=0", "not all different"),
        ("dialogue.prompts={cooking: hello}", "lacks {steps} and {instruction}"),
        ("decoding.thresholds.mistake=-0.1", "greater than or equal to 0"),
        ("nonsense", "not of the form"),
        ("vision.image_size.x=3", "no section"),
    ],
)
def test_a_wrong_setting_names_itself_and_the_rule(override, rule):
    with pytest.raises(InputError, match=rule) as caught:
        load_config(LiveMambaConfig, CONFIGS / "tiny.yaml", [override])
    assert "\n" not in str(caught.value)


def test_overrides_reach_into_sections_that_the_file_leaves_out():
    config = load_config(LiveMambaConfig, CONFIGS / "tiny.yaml", ["decoding.thresholds.mistake=0.3"])
    assert config.decoding.thresholds.mistake == 0.3
    assert config.decoding.thresholds.success == 0.5


def test_missing_and_odd_files(tmp_path):
    with pytest.raises(MissingError, match="does not exist"):
        load_config(LiveMambaConfig, tmp_path / "none.yaml")
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(InputError, match="mapping of settings"):
        load_config(LiveMambaConfig, tmp_path / "list.yaml")
    (tmp_path / "date.yaml").write_text("vision: {architecture: 2020-01-01}\n")
    with pytest.raises(InputError, match="not JSON serializable"):
        load_config(LiveMambaConfig, tmp_path / "date.yaml")


def test_every_field_has_a_sentence():
    """A config's docstring names each of its fields."""
    seen = [LiveMambaConfig]
    for config_type in seen:
        for name, field in config_type.__dataclass_fields__.items():
            if hasattr(field.type, "__dataclass_fields__"):
                seen.append(field.type)
            if config_type.__name__ != "ThresholdConfig":
                assert f"{name}: " in config_type.__doc__, f"{config_type.__name__}.{name}"
    assert len(seen) == 8
    assert set(DEFAULT_PROMPTS) == {"cooking", "general"}
