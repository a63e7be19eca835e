"""What to do about a step done out of turn: the question, the answer, and the rules that answer it. No torch.

Source: paper 4.1, spec/model.md (re-planner): two answers (which step was done instead; does the
instruction still make sense) and a table of what follows from them.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from livemamba.conversation import DIVERGENCE_OPENINGS
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, Step


@dataclass(frozen=True, kw_only=True)
class ReplanRequest:
    """The coach's question.

    Attributes:
        id: unique within one coach; answers are given back under it.
        plan: what is left to do, the instructed step still in it.
        done: node ids, in the order in which they were done.
        step: the node ids that the user was asked to do.
        instruction: the sentence in which they were asked for.
        feedback: what the watcher said, its opening included.
        actions: node ids done instead, where the watcher knows them.
        tick: of the divergence.
    """

    id: int
    plan: Plan
    done: tuple[str, ...]
    step: Step
    instruction: str
    feedback: str
    tick: int
    actions: tuple[str, ...] | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; `from_dict` reads it back unchanged."""
        lists = {name: list(getattr(self, name)) for name in ("done", "step")}
        actions = list(self.actions) if self.actions is not None else None
        return {**vars(self), **lists, "actions": actions, "plan": [list(step) for step in self.plan.steps]}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ReplanRequest":
        """The inverse of `to_dict`."""
        actions = data["actions"]
        changed = {
            "plan": Plan(tuple(tuple(step) for step in data["plan"])),
            "done": tuple(data["done"]),
            "step": tuple(data["step"]),
            "actions": tuple(actions) if actions is not None else None,
        }
        return cls(**{**data, **changed})


@dataclass(frozen=True, kw_only=True)
class ReplanResult:
    """The answer.

    Attributes:
        plan: what is left to do from here on.
        repeats: whether the instructed step is asked for again.
        done_step: node ids recognised as done; empty if none was.
        reason: one line for logs.
    """

    plan: Plan
    repeats: bool
    done_step: Step = ()
    reason: str = ""


class Replanner(Protocol):
    """Whoever answers. May be slow and may raise: the runner sees to both."""

    def replan(self, request: ReplanRequest) -> ReplanResult:
        """The plan after a divergence."""
        ...


# --- the table ---------------------------------------------------------------------------------------


def still_sensible(step: Step, done: Iterable[str], recipe: Recipe) -> bool:
    """Whether a step can still be asked for, as far as the graph knows.

    An action has lost its sense once something that depends on it has been done; a step, once all its
    actions have (a skipped step is asked for again as long as it makes sense).
    """
    done = set(done)
    return not step or any(not done & recipe.descendants(node) for node in step)


def apply_answers(
    plan: Plan, done: Iterable[str], instructed: Step, done_step: Step, sensible: bool | None, recipe: Recipe
) -> ReplanResult:
    """The plan that follows from the two answers. Source: the table in spec/model.md.

    | step that was done | sensible: yes | no | no usable answer |
    |---|---|---|---|
    | in the plan | it leaves | it, its ancestors and the instructed step leave | `still_sensible` decides |
    | already done, or dropped before | nothing changes | the instructed step leaves | `still_sensible` decides |
    | not in the recipe, or unknown | nothing changes | the instructed step leaves | nothing changes |

    Args:
        plan: what is left to do.
        done: node ids done before.
        instructed: the step that was asked for. It is no answer to what was done *instead* of it.
        done_step: node ids that were done instead; empty for unknown. Foreign ids count as unknown.
        sensible: whether `instructed` can still be asked for; None for no usable answer.
        recipe: the graph.
    """
    known = tuple(node for node in done_step if node in recipe and node not in instructed)
    if known and sensible is None:
        sensible = still_sensible(instructed, (*done, *known), recipe)
    early = [node for node in known if node in plan]
    gone = set(early)
    if sensible is False:
        gone |= {*instructed, *(before for node in early for before in recipe.ancestors(node))}
    left = plan.without(gone)
    repeats = any(node in left for node in instructed)
    what = f"{recipe.text(known)!r} was done" if known else "what was done is unknown"
    then = "the instruction is repeated" if repeats else "the instructed step is dropped"
    return ReplanResult(plan=left, repeats=repeats, done_step=known, reason=f"{what}; {then}")


# --- words -------------------------------------------------------------------------------------------

# "on" and "off" aren't among them: they tell steps apart.
_STOP_TEXT = """
a about already an and any appear appears are as at be been begun being but by did do does doing done for from
had has have having he her i if in instead into is it its made make more most much my no not now of onto or our
out over please seem seems she so some started starting step still task than that the their them then there
these they this to too tried try trying up was were what when which while with yet you your
"""
_STOP_WORDS = frozenset(_STOP_TEXT.split())
_IRREGULAR = {
    "took": "take",
    "taken": "take",
    "broke": "break",
    "broken": "break",
    "ground": "grind",
    "shook": "shake",
    "shaken": "shake",
    "froze": "freeze",
    "beaten": "beat",
    "spun": "spin",
    "halves": "half",
}
# Ending, what takes its place, how many letters must stand before it.
_ENDINGS = (("ing", "", 3), ("ies", "y", 2), ("ied", "y", 2), ("ed", "", 3), ("es", "", 3), ("s", "", 3))

# What a feedback says about the step that was *asked for*: no evidence of what was done.
_ASKED_FOR = re.compile(
    r"\b(instead of|rather than|in place of|(you|we) (were|are) (asked|told|supposed|meant) to|you should(n't)?|"
    r"(the|your) instruction (was|is) to|i asked you to)\b((?!\bbut\b)[^.,;:!?])*"
)


def stems(text: str) -> list[str]:
    """The words that count, cut down so that "chopped", "chopping" and "chop" are one. Fractions stay whole."""
    words = re.findall(r"[a-z]+|\d+(?:[./]\d+)?", text.lower())
    return [_stem(word) for word in words if word not in _STOP_WORDS]


def _stem(word: str) -> str:
    word = _IRREGULAR.get(word, word)
    for ending, instead, least in _ENDINGS:
        if word.endswith(ending) and len(word) >= len(ending) + least and not word.endswith("ss"):
            word = word.removesuffix(ending) + instead
            break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    return word[:-1] if len(word) > 2 and word[-1] == word[-2] else word


class RulesReplanner:
    """Answers from the graph and the words alone: always there, instant, deterministic.

    A step's score is the share of its words, rare ones weighing more, that the feedback has; words of the
    feedback that the step lacks count against it, less. The instructed step takes part: where it
    fits best, the feedback speaks of it, and what was done is unknown.

    Args:
        recipe: steps and graph.
        margin: by how much the best step must lead the next, 0 to 1; below, unknown. Steps with the same
            words don't rival each other: the next one due is meant.
        least: the score below which nothing counts as a match, 0 to 1.

    Raises:
        InputError: if margin or least is out of range.
    """

    def __init__(self, recipe: Recipe, *, margin: float = 0.1, least: float = 0.5) -> None:
        if not (0 <= margin <= 1 and 0 <= least <= 1):
            raise InputError(f"margin {margin!r} and least {least!r} are shares of a step's words, 0 to 1")
        self.recipe = recipe
        self._margin, self._least = margin, least
        self._words = {step.id: frozenset(stems(step.text)) for step in recipe.steps}
        self._df = Counter(word for words in self._words.values() for word in words)

    def replan(self, request: ReplanRequest) -> ReplanResult:
        """The plan after a divergence; see `apply_answers`."""
        done_step = request.actions or self.recognise(request.feedback, request.step, request.plan)
        return apply_answers(request.plan, request.done, request.step, done_step, None, self.recipe)

    def recognise(self, feedback: str, instructed: Step, plan: Plan) -> Step:
        """The step that a feedback says was done instead of the instructed one.

        Returns:
            Its node id, or nothing where no step, or more than one, fits.
        """
        said = self._said(feedback)
        scores = {words: self._score(words, said) for words in self._words.values()}
        (words, top), *others = sorted(scores.items(), key=lambda item: -item[1])
        if not top or top < self._least or (others and top - others[0][1] < self._margin):
            return ()
        same = [node for node, own in self._words.items() if own == words]
        if any(node in instructed for node in same):
            return ()
        due = [node for node in plan.node_ids if node in same]
        return (due[0],) if due else (same[0],)

    def _said(self, feedback: str) -> frozenset[str]:
        for opening in DIVERGENCE_OPENINGS:
            feedback = feedback.removeprefix(opening)
        return frozenset(stems(_ASKED_FOR.sub(" ", feedback.lower())))

    def _weight(self, words: Iterable[str]) -> float:
        # A word that no step has weighs like one that a single step has.
        # fsum: the sum must not depend on the order in which a set gives its words.
        return math.fsum(math.log(1 + len(self._words) / max(1, self._df[word])) for word in words)

    def _score(self, step: frozenset[str], said: frozenset[str]) -> float:
        shared = self._weight(step & said)
        rest = self._weight(step - said) + 0.25 * self._weight(said - step)
        return shared / (shared + rest) if shared else 0.0
