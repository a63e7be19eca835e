"""From an act to what the hands do, phase by phase. No torch.

The script of a mistake is built like that of the asked act and timed by the asked act's pace, so both are the
same up to the first phase in which they differ: nothing before it can give the mistake away.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest

from livemamba.simkitchen import effects as do
from livemamba.simkitchen.acts import Act
from livemamba.simkitchen.goods import LEVELS
from livemamba.simkitchen.mistakes import Flaw, Mistake, mistakes_for
from livemamba.simkitchen.phases import Contrast, Phase, Script
from livemamba.simkitchen.world import BEATS_PER_S, World

_GRAIN = BEATS_PER_S // 10  # phases last whole tenths of a second
_SLOWEST_S = 3.0  # what takes longer is not moved more slowly: the cook hesitates
_HESITATE = Phase(name="hesitate", slack=1.0, motion="hold")
Phases = Iterator[Phase]


def make_script(
    world: World,
    asked: Act,
    *,
    name: str,
    duration_s: float,
    mistake: Mistake | None = None,
    pause: tuple[float, float] | None = None,
) -> Script:
    """The timed script of a step.

    Args:
        world: as it is when the step begins: where things are.
        asked: what the step asks for.
        name: of the step.
        duration_s: that the asked act takes, right as it is asked for; longer if its phases need it.
        mistake: what is done instead.
        pause: (where, seconds): an idle moment before one phase, chosen by a share of the phases.
    """
    right = list(_phases(world, asked, ""))
    speed = _speed(right, duration_s - (pause[1] if pause else 0.0))
    right = _paused(right, pause, right)
    if mistake is None:
        return Script(name=name, phases=_timed(right, *speed), contrasts=_contrasts(world, asked, right))
    wrong = _paused(list(_phases(world, mistake.done, mistake.flaw)), pause, right)
    return Script(
        name=name,
        phases=_timed(wrong, *speed),
        evidence_index=_differing(wrong, right),
        contrasts=() if mistake.flaw else _contrasts(world, mistake.done, wrong),
    )


def _differing(phases: list[Phase], others: list[Phase]) -> int:
    """The first phase that isn't the other script's."""
    return next(index for index, (one, other) in enumerate(zip_longest(phases, others)) if one != other)


def _contrasts(world: World, done: Act, phases: list[Phase]) -> tuple[Contrast, ...]:
    """Every act of which what is done, rightly in its manner, would be a mistake.

    Args:
        world: as it is when the step begins.
        done: what is done.
        phases: of that, with the idle moment.
    """
    on_counter = world.kitchen.goods
    others = {mistake.done for mistake in mistakes_for(done, on_counter) if not mistake.flaw}
    pauses = [index for index, phase in enumerate(phases) if phase.name == "idle"]
    plain = [phase for phase in phases if phase.name != "idle"]
    found = []
    for asked in sorted(others, key=repr):
        for mistake in mistakes_for(asked, on_counter):
            if mistake.done == done and not mistake.flaw:
                index = _differing(plain, list(_phases(world, asked, "")))
                index += sum(pause <= index for pause in pauses)
                found.append(Contrast(asked=asked, mistake=mistake, index=index))
                break
    return tuple(found)


def idle_script(seconds: float) -> Script:
    """Nothing is done: the hands go to rest and stay there."""
    beats = max(1, round(seconds * BEATS_PER_S / _GRAIN)) * _GRAIN
    away = min(beats, 6 * _GRAIN)
    rest = Phase(name="rest", right="rest_right", left="rest_left", beats=away)
    return Script(name="idle", phases=(rest, replace(rest, name="stay", beats=beats - away)))


def _speed(phases: list[Phase], duration_s: float) -> tuple[float, float]:
    """Seconds for a weight of 1 and for a slack of 1, such that the phases last as long as asked."""
    spare_s = max(0.0, duration_s - sum(phase.least_s for phase in phases))
    weight, slack = (sum(getattr(phase, name) for phase in phases) for name in ("weight", "slack"))
    per_weight_s = min(spare_s / weight, _SLOWEST_S) if slack else spare_s / weight
    return per_weight_s, (spare_s - per_weight_s * weight) / slack if slack else 0.0


def _timed(phases: list[Phase], per_weight_s: float, per_slack_s: float) -> tuple[Phase, ...]:
    def beats(phase: Phase) -> int:
        seconds = phase.least_s + phase.weight * per_weight_s + phase.slack * per_slack_s
        return round(seconds * BEATS_PER_S / _GRAIN) * _GRAIN

    return tuple(replace(phase, beats=beats(phase)) for phase in phases)


def _paused(phases: list[Phase], pause: tuple[float, float] | None, right: list[Phase]) -> list[Phase]:
    """With an idle moment, where the right script has it; never inside a hands-free wait."""
    if pause is None:
        return phases
    index = 1 + int(pause[0] * (len([phase for phase in right if phase.name != "idle"]) - 1))
    return [*phases[:index], Phase(name="idle", least_s=pause[1], motion="hold"), *phases[index:]]


def _phases(world: World, act: Act, flaw: Flaw) -> Phases:
    if act.kind not in ("heat", "wait", "cut", "wash"):
        yield from _uncovered(world, act)
    match act.kind:
        case "add":
            yield from _add(act, flaw)
        case "pour":
            yield from _pour(act, flaw)
        case "cut":
            yield from _cut(world, act, flaw)
        case "stir":
            yield from _stir(act, flaw)
        case "heat" | "wait":
            yield from _heat(act, flaw)
        case "cover":
            yield from _cover(act, flaw)
        case "wash":
            yield from _wash(world, act, flaw)
        case "place":
            yield from _place(world, act, flaw)
        case "serve":
            yield from _serve(act, flaw)


def _uncovered(world: World, act: Act) -> Phases:
    for name in (act.what, act.to):
        if name in world.vessels and (cover := world.vessels[name].cover):
            yield Phase(name="reach", least_s=0.5, right=name)
            yield Phase(name="uncover", effects=(do.Uncover(name),))
            yield Phase(name="back", least_s=0.6, right=cover)
            yield Phase(name="put", effects=(do.Take(""),))


def _fetched(tool: str) -> Phases:
    yield Phase(name="reach", least_s=0.4, weight=0.1, right=tool)
    yield Phase(name="take", effects=(do.Take(tool),), marked=True)


def _returned(home: str) -> Phases:
    yield Phase(name="back", least_s=0.4, weight=0.15, right=home, left="rest_left")
    yield Phase(name="put", effects=(do.Take(""),), marked=True)


def _add(act: Act, flaw: Flaw) -> Phases:
    spoon: do.SpoonForm = "tablespoon" if act.tool == "tablespoon" else "teaspoon"
    yield from _fetched(spoon)
    for number in range(1, act.count + 1):
        beside = flaw == "spill" and number == act.count
        yield _HESITATE
        yield Phase(name="to_jar", least_s=0.3, weight=0.2, right=act.what)
        yield Phase(name="scoop", least_s=0.3, weight=0.3, effects=(do.Scoop(act.what),), motion="hold", marked=True)
        yield Phase(name="carry", least_s=0.3, weight=0.3, right=_over(act.to, beside), left=f"hold:{act.to}")
        tip = do.Tip(act.what, act.to, spoon, beside)
        yield Phase(name="tip", least_s=0.4, weight=0.5, effects=(tip,), motion="hold", marked=True)
    yield from _returned(spoon)


def _pour(act: Act, flaw: Flaw) -> Phases:
    yield _HESITATE
    yield from _fetched(act.what)
    halves = 2 if act.share == "all" else 1
    for number in range(1, halves + 1):
        beside = flaw == "spill" and number == halves
        yield Phase(name="carry", least_s=0.3, weight=0.2, right=_over(act.to, beside))
        pour = do.Pour(act.what, act.to, beside)
        yield Phase(name="pour", least_s=0.6, weight=1.0, effects=(pour,), motion="hold", marked=True)
    yield from _returned(act.what)


def _over(vessel: str, beside: bool) -> str:
    return f"beside:{vessel}" if beside else vessel


def _to_board(world: World, what: str) -> Phases:
    if world.items[what].where != "board":
        yield from _fetched(what)
        yield Phase(name="carry", least_s=0.5, weight=0.1, right="board")
        yield Phase(name="put", effects=(do.PutDown(what),))


def _cut(world: World, act: Act, flaw: Flaw) -> Phases:
    yield from _to_board(world, act.what)
    yield from _fetched("knife")
    for number, index in enumerate(_cuts(world, act)):
        weight = 1.0 if number == 0 else 0.7
        yield Phase(name="saw", least_s=0.7, weight=weight, right="board", left="hold:board", motion="saw")
        at = 0.18 if flaw == "uneven" and number == 0 else 0.5
        yield Phase(name="split", effects=(do.Split(act.what, index, at),), marked=True)
    yield from _returned("knife")


def _cuts(world: World, act: Act) -> Iterator[int]:
    """Which piece is cut at each stroke: all in halves, then all of those, until there are enough."""
    have = len(world.items[act.what].pieces)
    while have < act.count:
        yield from (2 * index for index in range(have))
        have *= 2


def _stir(act: Act, flaw: Flaw) -> Phases:
    yield from _fetched(act.tool)
    stirring = Phase(
        name="stir", least_s=0.7, weight=1.0, right=act.to, left=f"hold:{act.to}", motion="stir", marked=True
    )
    yield replace(stirring, effects=(do.Mix(act.to, 0.0, 0.5),))
    if flaw == "splash":
        yield replace(stirring, name="splash", weight=0.0, effects=(do.Splash(act.to),))
    yield replace(stirring, effects=(do.Mix(act.to, 0.5, 1.0),))
    yield from _returned(act.tool)


def _heat(act: Act, flaw: Flaw) -> Phases:
    heated = act.kind == "heat"
    if heated:
        yield Phase(name="reach", least_s=0.5, weight=0.05, right="dial")
        yield Phase(name="turn", effects=(do.SetLevel(LEVELS.index(act.level)),), marked=True)
    yield Phase(name="reach", least_s=0.5, weight=0.05, right="timer")
    yield Phase(name="set", effects=(do.SetTimer(act.minutes),), marked=True)
    yield Phase(name="rest", least_s=0.5, right="rest_right", left="rest_left")
    halves = 2 * act.minutes
    for _ in range(halves // 2 if flaw == "short" else halves):
        browning = (do.Brown(act.to, 1 / halves),) if heated else ()
        running = (do.RunTimer(0.5), *browning)
        yield Phase(name="wait", least_s=0.3, weight=0.5, hands=False, effects=running)
    if flaw == "long":
        burning = (do.Brown(act.to, 1.0, burn=True),) if heated else ()
        yield Phase(name="overrun", least_s=4.0, weight=0.4, hands=False, effects=burning, marked=True)
    yield Phase(name="reach", least_s=0.5, weight=0.05, right="dial" if heated else "timer", marked=True)
    yield Phase(name="off", effects=(do.SetLevel(0), do.SetTimer(0)))
    yield Phase(name="rest", least_s=0.4, right="rest_right")


def _cover(act: Act, flaw: Flaw) -> Phases:
    yield _HESITATE
    yield from _fetched(act.tool)
    yield Phase(name="carry", least_s=0.5, weight=0.6, right=act.to)
    covering = do.Cover(act.to, act.tool, flaw == "askew")
    yield Phase(name="cover", least_s=0.3, weight=0.3, effects=(covering,), motion="hold", marked=True)
    yield Phase(name="back", least_s=0.5, weight=0.1, right="rest_right")


def _wash(world: World, act: Act, flaw: Flaw) -> Phases:
    source = "board" if world.items[act.what].where == "board" else act.what
    yield Phase(name="reach", least_s=0.4, weight=0.1, right=source)
    yield Phase(name="take", effects=(do.Take(act.what),), marked=True)
    yield Phase(name="carry", least_s=0.5, weight=0.2, right="sink")
    for left in (0.5,) if flaw == "stain" else (0.5, 0.0):
        scrub = do.Scrub(act.what, left)
        yield Phase(name="scrub", least_s=0.5, weight=1.0, right="sink", motion="scrub", effects=(scrub,))
    yield Phase(name="take", effects=(do.Take(act.what),))
    yield Phase(name="carry", least_s=0.5, weight=0.2, right="board", marked=True)
    yield Phase(name="put", effects=(do.PutDown(act.what),))
    yield Phase(name="back", least_s=0.5, right="rest_right")


def _place(world: World, act: Act, flaw: Flaw) -> Phases:
    on_board = world.items[act.what].where == "board"
    for number in range(1, act.count + 1):
        source = "board" if on_board and number == 1 else act.what
        yield _HESITATE
        yield Phase(name="reach", least_s=0.4, weight=0.2, right=source)
        yield Phase(name="take", effects=(do.Take(act.what),), marked=True)
        beside = flaw == "drop" and number == act.count
        yield Phase(name="carry", least_s=0.5, weight=0.6, right=_over(act.to, beside))
        put = do.Put(act.what, act.to, beside)
        yield Phase(name="put", least_s=0.3, weight=0.1, effects=(put,), motion="hold", marked=True)
    yield Phase(name="back", least_s=0.5, weight=0.1, right="rest_right", marked=True)


def _serve(act: Act, flaw: Flaw) -> Phases:
    for left in (0.5, 0.0):
        yield _HESITATE
        yield Phase(name="reach", least_s=0.4, weight=0.3, right=act.what)
        yield Phase(name="lift", least_s=0.3, weight=0.2, effects=(do.Lift(act.what, left),), motion="hold")
        beside = flaw == "drop" and left == 0.0
        yield Phase(name="carry", least_s=0.5, weight=0.6, right=_over(act.to, beside))
        put = do.Serve(act.what, act.to, 1.0 - left, beside)
        yield Phase(name="put", least_s=0.3, weight=0.2, effects=(put,), motion="hold", marked=True)
    yield Phase(name="back", least_s=0.5, weight=0.1, right="rest_right", marked=True)
