"""Which mistakes an act allows, and how they are said. No torch.

Categories: CaptainCook4D's five with visible signs (spec/interactive_cooking.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from livemamba.simkitchen.acts import Act, counted, things
from livemamba.simkitchen.goods import COVERS, LEVELS, MOST_MINUTES, MOST_SPOONS, PIECES, SPOONS, STIRRERS, good
from livemamba.timeline import MistakeCategory

Flaw = Literal["", "spill", "uneven", "splash", "askew", "stain", "drop", "short", "long"]

_FLAWS: dict[str, tuple[Flaw, ...]] = {
    "add": ("spill",),
    "pour": ("spill",),
    "cut": ("uneven",),
    "stir": ("splash",),
    "cover": ("askew",),
    "wash": ("stain",),
    "place": ("drop",),
    "serve": ("drop",),
}


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """What is done in place of what was asked.

    Attributes:
        category: CaptainCook4D's.
        done: the act that is carried out; the asked one where only its manner is wrong.
        flaw: what is wrong with the manner; empty where another act is done.
        texts: ways to say it, most plain first.
    """

    category: MistakeCategory
    done: Act
    flaw: Flaw = ""
    texts: tuple[str, ...]

    @property
    def name(self) -> str:
        """The flaw, or "other" for another act in place of the asked one."""
        return self.flaw or "other"


def mistakes_for(asked: Act, on_counter: Sequence[str]) -> tuple[Mistake, ...]:
    """Every mistake that can be made with an act.

    Args:
        asked: what the step asks for.
        on_counter: ingredients that lie about, decoys among them.
    """
    found = [*_technique(asked), *_preparation(asked, on_counter), *_measurement(asked), *_heat(asked)]
    return tuple(found)


def pick(options: Sequence[Mistake], category: str, random: np.random.Generator) -> Mistake:
    """One mistake of a category."""
    among = [mistake for mistake in options if mistake.category == category]
    return among[int(random.integers(len(among)))]


def _technique(asked: Act) -> Iterator[Mistake]:
    for flaw in _FLAWS.get(asked.kind, ()):
        yield Mistake(category="technique", done=asked, flaw=flaw, texts=_flaw_texts(asked, flaw))


def _flaw_texts(asked: Act, flaw: Flaw) -> tuple[str, ...]:
    what, to = asked.what, asked.to
    match flaw:
        case "spill":
            return f"Spilled {what} next to the {to}", f"Some {what} went on the counter, not into the {to}"
        case "uneven":
            return f"Cut the {what} into uneven pieces", f"The {what} pieces are not the same size"
        case "splash":
            return f"Stirred so hard that the {to} splashed over", f"Splashed out of the {to} while stirring"
        case "askew":
            return f"Left the {to} half open", f"The {asked.tool} does not cover the {to}"
        case "stain":
            return f"Left dirt on the {what}", f"The {what} is still dirty"
        case "drop" if asked.kind == "serve":
            return f"Dropped food next to the {to}", f"Some food fell beside the {to}"
        case "drop":
            return f"Dropped the {what} next to the {to}", f"The {what} fell beside the {to}"
    raise AssertionError(f"no words for {flaw} of {asked}")


def _preparation(asked: Act, on_counter: Sequence[str]) -> Iterator[Mistake]:
    def wrong(done: Act, *texts: str) -> Mistake:
        return Mistake(category="preparation", done=done, texts=texts)

    if asked.kind in ("add", "pour", "cut", "wash", "place"):
        verb = {"add": "Added", "pour": "Poured", "cut": "Cut", "wash": "Washed", "place": "Took"}[asked.kind]
        for other in on_counter:
            if other != asked.what and good(other).form == good(asked.what).form:
                done = replace(asked, what=other)
                yield wrong(done, f"{verb} {other} instead of {asked.what}", f"Used {other} and not {asked.what}")
    for kind, tools in (("stir", STIRRERS), ("cover", COVERS)):
        if asked.kind == kind:
            tool = next(tool for tool in tools if tool != asked.tool)
            verb = {"stir": "Stirred", "cover": "Covered"}[kind]
            yield wrong(
                replace(asked, tool=tool),
                f"{verb} with the {tool} instead of the {asked.tool}",
                f"Took the {tool} and not the {asked.tool}",
            )
    if asked.kind == "serve":
        place = "board" if asked.to == "plate" else "plate"
        text = f"Served onto the {place} instead of the {asked.to}"
        yield wrong(replace(asked, to=place), text, f"Used the {place} and not the {asked.to}")


def _measurement(asked: Act) -> Iterator[Mistake]:
    def wrong(done: Act, *texts: str) -> Mistake:
        return Mistake(category="measurement", done=done, texts=texts)

    if asked.kind == "add":
        for count in (asked.count - 1, asked.count + 1):
            if 1 <= count <= MOST_SPOONS:
                text = f"Added {counted(count, asked.tool)} of {asked.what} instead of {asked.count}"
                yield wrong(replace(asked, count=count), text, f"{count} instead of {counted(asked.count, asked.tool)}")
        tool = next(spoon for spoon in SPOONS if spoon != asked.tool)
        text = f"Added {counted(asked.count, tool)} instead of {counted(asked.count, asked.tool)} of {asked.what}"
        yield wrong(replace(asked, tool=tool), text, f"Used a {tool} and not a {asked.tool}")
    if asked.kind == "place":
        for count in (asked.count - 1, asked.count + 1):
            if 1 <= count <= 3:
                done = replace(asked, count=count)
                yield wrong(done, f"Put {things(done)} instead of {asked.count}", f"{count} instead of {things(asked)}")
    if asked.kind == "cut":
        for count in PIECES:
            if count in (asked.count * 2, asked.count // 2):
                text = f"Cut the {asked.what} into {count} pieces instead of {asked.count}"
                yield wrong(replace(asked, count=count), text, f"{count} pieces instead of {asked.count}")
    if asked.kind == "pour":
        share = "half" if asked.share == "all" else "all"
        text = f"Poured {share} the {asked.what} instead of {asked.share}"
        yield wrong(
            replace(asked, share=share), text, f"{share.capitalize()} the {asked.what} instead of {asked.share}"
        )


def _heat(asked: Act) -> Iterator[Mistake]:
    if asked.kind == "heat":
        for level in LEVELS[1:]:
            if level != asked.level:
                texts = (f"Heated on {level} instead of {asked.level}", f"Set the stove to {level}, not {asked.level}")
                yield Mistake(category="temperature", done=replace(asked, level=level), texts=texts)
    if asked.kind in ("heat", "wait"):
        verb = "heat" if asked.kind == "heat" else "rest"
        wanted = counted(asked.minutes, "minute")
        short = (f"Stopped before the {wanted} were over", f"Did not {verb} for {wanted}")
        yield Mistake(category="timing", done=asked, flaw="short", texts=short)
        long = (f"Let it {verb} longer than {wanted}", f"Went on after the {wanted} were over")
        yield Mistake(category="timing", done=asked, flaw="long", texts=long)
        for minutes in range(1, MOST_MINUTES + 1):
            if abs(minutes - asked.minutes) >= 2 or minutes == asked.minutes * 2:
                text = f"Set the timer to {counted(minutes, 'minute')} instead of {asked.minutes}"
                done = replace(asked, minutes=minutes)
                yield Mistake(
                    category="timing", done=done, texts=(text, f"{counted(minutes, 'minute')} instead of {wanted}")
                )
