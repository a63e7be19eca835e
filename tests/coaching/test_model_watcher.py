import pytest
import torch

from livemamba import Stream, coach_video
from livemamba.coaching.events import Event
from livemamba.coaching.model_watcher import LiveMambaWatcher
from livemamba.config import DecodingConfig, ThresholdConfig
from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.dialogue.decode import Response
from livemamba.dialogue.prompts import coaching_prompt
from livemamba.recipe import recipe_from_dict

RECIPE = recipe_from_dict({"name": "Egg", "steps": ["Heat the pan", "Crack an egg", "Fry the egg"]}, where="test")
NEVER = ThresholdConfig(success=2, mistake=2, divergence=2, advance=2)


def test_a_step_starts_a_fresh_stream_at_its_prompt(small_model, make_frames):
    frames = make_frames(4)
    watcher = LiveMambaWatcher(Stream(small_model, decoding=DecodingConfig(thresholds=NEVER)), RECIPE)
    watcher.start(RECIPE.plan, "Now heat the pan.", 0)
    for frame in frames[:2]:
        assert watcher.see(frame) == ()
    rest = RECIPE.plan.without(["1"])
    watcher.start(rest, "Now crack an egg.", 2)
    watcher.see(frames[2])

    alone = Stream(small_model, decoding=DecodingConfig(thresholds=NEVER))
    alone.prompt(coaching_prompt(small_model.config.dialogue, RECIPE, rest, "Now crack an egg."))
    alone.see(frames[2])
    assert torch.equal(watcher.stream.state.ssm, alone.state.ssm)


@pytest.mark.parametrize(
    ("kind", "text", "ends_step", "expected"),
    [
        ("success", "You did.", False, ["success"]),
        ("success", "You did.", True, ["success", "advance"]),
        ("mistake", "Too much.", True, ["mistake", "advance"]),
        ("divergence", DIVERGENCE_OPENINGS[0], True, ["divergence", "advance"]),
        ("advance", "", True, ["advance"]),
        ("success", "", False, []),  # cut before its first word
        ("mistake", "", True, ["advance"]),
    ],
)
def test_a_response_that_ends_the_step_is_two_events(
    small_model, make_frames, monkeypatch, kind, text, ends_step, expected
):
    watcher = LiveMambaWatcher.of(small_model, RECIPE)
    watcher.start(RECIPE.plan, "Now heat the pan.", 0)
    said = Response(kind=kind, text=text, ends_step=ends_step, confidence=0.75)
    monkeypatch.setattr(watcher.stream, "see", lambda frame: [said])
    events = watcher.see(make_frames(1, first_tick=7)[0])
    assert [event.kind for event in events] == expected
    assert all(isinstance(event, Event) and event.tick == 7 and event.confidence == 0.75 for event in events)
    assert [event.text for event in events if event.kind != "advance"] == ([text] if text else [])


def test_after_the_end_of_a_step_frames_are_not_judged(small_model, make_frames):
    """While the coach waits for a re-planned plan, a driver that shows frames all the same gets nothing."""
    over = DecodingConfig(thresholds=ThresholdConfig(success=2, mistake=2, divergence=2, advance=0))
    watcher = LiveMambaWatcher(Stream(small_model, decoding=over), RECIPE)
    watcher.start(RECIPE.plan, "Now heat the pan.", 0)
    first, second = make_frames(2)
    assert [event.kind for event in watcher.see(first)] == ["advance"]
    assert watcher.see(second) == ()


def test_a_model_coaches_a_video_in_one_call(small_model, make_frames):
    over = DecodingConfig(thresholds=ThresholdConfig(success=2, mistake=2, divergence=2, advance=0))
    timeline = coach_video(small_model.with_decoding(over), RECIPE, make_frames(5))
    assert [(message.kind, message.time_s) for message in timeline.messages] == [
        ("instruction", 0.0),
        ("instruction", 0.0),
        ("instruction", 0.5),
        ("finish", 1.0),
    ]
