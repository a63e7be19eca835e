import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from livemamba.timeline import FINISH_TEXT, Message
from livemamba.video.overlay import BAR_COLOURS, BARS_SHARE, INSTRUCTION_SHARE, Caption, caption_at, draw_caption


def say(time_s, kind, text=""):
    return Message(time_s=time_s, kind=kind, text=text)


MESSAGES = [
    say(1.0, "instruction", "Chop the onion."),
    say(3.0, "mistake", "The pieces are too large."),
    say(5.0, "success", "You chopped the onion."),
    say(5.0, "instruction", "Heat the oil."),
    say(12.0, "advance"),
    say(12.0, "divergence", "You did not follow the instruction. You peeled garlic."),
    say(75.0, "finish", FINISH_TEXT),
]


@pytest.mark.parametrize(
    ("time_s", "instruction", "kind", "clock"),
    [
        (0.9, "", None, "0:00"),
        (1.0, "Chop the onion.", None, "0:01"),
        (3.0, "Chop the onion.", "mistake", "0:03"),
        (4.9, "Chop the onion.", "mistake", "0:04"),
        (5.0, "Heat the oil.", "success", "0:05"),
        (8.9, "Heat the oil.", "success", "0:08"),
        (9.0, "Heat the oil.", None, "0:09"),
        (12.5, "Heat the oil.", "divergence", "0:12"),
        (74.9, "Heat the oil.", None, "1:14"),
        (75.0, "", "finish", "1:15"),
        (600.0, "", "finish", "10:00"),
    ],
)
def test_what_stands_on_the_picture_when(time_s, instruction, kind, clock):
    caption = caption_at(MESSAGES, time_s)
    assert (caption.instruction, caption.kind, caption.clock) == (instruction, kind, clock)
    assert bool(caption.feedback) == (kind is not None)


def luminance(colour):
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """WCAG 2.1's contrast ratio."""
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("kind", BAR_COLOURS)
@pytest.mark.parametrize("behind", [0, 255])
def test_letters_stand_out_from_the_bar_on_black_and_on_white(kind, behind):
    picture = np.full((360, 640, 3), behind, np.uint8)
    caption = Caption(instruction="x") if kind == "instruction" else Caption(kind=kind, feedback="x")
    ground = draw_caption(picture, caption)[-3, -3]
    assert contrast(BAR_COLOURS[kind][1], ground) >= 4.5


def changed(picture, caption):
    return (draw_caption(picture, caption) != picture).any(axis=2)


LONG = "Pour the batter slowly into the middle of the pan and tilt it until the bottom is covered. " * 8


@pytest.mark.parametrize("size", [(360, 640), (1136, 640), (1080, 1920), (240, 1900), (640, 640), (240, 640)])
@pytest.mark.parametrize("text", ["Serve.", "Put the pan on the stove and wait until the oil shimmers.", LONG])
def test_the_bars_never_cover_more_than_a_quarter(size, text):
    picture = np.full((*size, 3), 128, np.uint8)
    instruction = changed(picture, Caption(instruction=text)).any(axis=1)
    assert 0 < instruction.sum() <= size[0] * INSTRUCTION_SHARE + 1
    both = changed(picture, Caption(instruction=text, kind="mistake", feedback=text)).any(axis=1)
    assert instruction.sum() < both.sum() <= size[0] * BARS_SHARE + 1
    assert both[-int(both.sum()) :].all(), "the bars lie at the lower edge"


def ink(text, size=(360, 640)):
    picture = np.zeros((*size, 3), np.uint8)
    drawn = draw_caption(picture, Caption(instruction=text))
    return int((drawn > 200).all(axis=2).sum())


def test_text_is_drawn_wrapped_and_cut_only_when_it_must_be():
    short, two_lines = "Serve.", "Put the pan on the stove and wait until the oil shimmers and moves freely in it."
    assert 0 < ink(short) < ink(two_lines)
    assert ink("m" * 500) > 0, "a word longer than a line is broken"
    picture = np.zeros((360, 640, 3), np.uint8)
    end = [draw_caption(picture, Caption(instruction=two_lines + tail)) for tail in (" Now.", " Not.")]
    assert not np.array_equal(*end), "its last word is there"
    end = [draw_caption(picture, Caption(instruction=LONG + tail)) for tail in (" Now.", " Not.")]
    assert np.array_equal(*end), "what doesn't fit is cut"


def test_accents_and_typographic_signs_become_plain_letters():
    picture = np.zeros((360, 640, 3), np.uint8)
    fancy = draw_caption(
        picture, Caption(instruction="Add the crème fraîche \u2013 \u201cjalapeños\u201d, ½ cup, 180°, œuf")
    )
    plain = draw_caption(picture, Caption(instruction='Add the creme fraiche - "jalapenos", 1/2 cup, 180 deg, oeuf'))
    assert np.array_equal(fancy, plain)
    unknown = draw_caption(picture, Caption(instruction="切る"))
    assert np.array_equal(unknown, draw_caption(picture, Caption(instruction="??")))


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300), st.text(max_size=300), st.integers(240, 400), st.integers(320, 700))
def test_no_text_breaks_it(instruction, feedback, height, width):
    picture = np.full((height, width, 3), 90, np.uint8)
    drawn = draw_caption(picture, Caption(instruction=instruction, kind="success", feedback=feedback, clock="0:00"))
    assert drawn.shape == picture.shape and drawn.dtype == np.uint8
    assert (picture == 90).all(), "the picture given is left alone"


def test_the_clock_moves_in_the_upper_corner():
    picture = np.full((360, 640, 3), 128, np.uint8)
    where = changed(picture, Caption(clock="0:59"))
    assert where[:40, 560:].any() and not where[45:].any() and not where[:, :500].any()
    assert not np.array_equal(
        draw_caption(picture, Caption(clock="0:59")), draw_caption(picture, Caption(clock="1:00"))
    )
