"""A plan played against what was done: the protocol of both Interactive Cooking sets. No torch.

Source: paper B.1, B.2; spec/interactive_cooking.md. In the Main set the plan is what was done, so every
action follows its instruction and no re-plan happens: it is the special case of the Advanced set.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from livemamba.data.captaincook4d import MISTAKE_TAGS, Action, Recording, Tag
from livemamba.data.notes import Notes
from livemamba.data.sentences import divergence_text, mistake_text, success_text
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe
from livemamba.timeline import FINISH_TEXT, Message, Timeline

MistakeTime = Literal["end", "middle", "exact"]
MISTAKE_TIMES: tuple[str, ...] = get_args(MistakeTime)

Did = tuple[str, Action]
"""A node id of the recipe, and the action in which it was done."""

Group = tuple[Did, ...]
"""Actions done in parallel, the longest first: they share a stretch of time."""


@dataclass(frozen=True, kw_only=True)
class BuiltVideo:
    """One video of a set.

    Attributes:
        timeline: messages, plans and recipe.
        duration_s: of the whole video.
        replans: how often a step wasn't finished when its group of actions was over.
        has_compound_groups: whether actions were done in parallel anywhere.
    """

    timeline: Timeline
    duration_s: float
    replans: int
    has_compound_groups: bool


def play(
    recording: Recording, recipe: Recipe, plan: Plan, groups: Sequence[Group], mistake_time: MistakeTime, notes: Notes
) -> BuiltVideo:
    """Instruct, watch each group of actions, give feedback, re-plan, instruct again.

    An action follows the instruction if it was in the instructed step when its group began. Whatever is done
    leaves the plan. A step that isn't finished after its group is a re-plan: it is kept once, then removed
    (the paper decided by hand). A plan that isn't empty at the end leaves one instruction dangling.

    Args:
        recording: the video.
        recipe: texts of the plan's nodes.
        plan: what the coach means to instruct.
        groups: what was done, in order of time; at least one.
        mistake_time: stand-in for the hand-set times of the paper: at the end of the action, or halfway; "exact", the
            moment by which it can be seen, for corpora that know it.
        notes: takes what had to be mended.
    """
    script = _Script(recording.id, recipe, plan, mistake_time, notes)
    script.instruct(groups[0][0][1].start_s)
    kept: set[str] = set()
    replans = 0
    for group in groups:
        instructed = set(script.plan.current) if script.plan else set()
        if not script.plan:
            notes.add("done after the plan was empty: no instruction stands", recording.id)
        script.feedback(group, instructed)
        unfinished = {node for node in instructed if node in script.plan}
        if unfinished:
            replans += 1
            if unfinished <= kept:
                script.plan = script.plan.without(unfinished)
            kept |= unfinished
        if script.plan:
            script.instruct(group[0][1].end_s)
    if script.plan:
        notes.add("ends with an instruction that nothing follows", recording.id)
    else:
        script.say(Message(time_s=groups[-1][0][1].end_s, kind="finish", text=FINISH_TEXT))
    return BuiltVideo(
        timeline=script.timeline(recording.activity),
        duration_s=recording.duration_s,
        replans=replans,
        has_compound_groups=any(len(group) > 1 for group in groups),
    )


def _seen_s(action: Action, video_id: str) -> float:
    if action.seen_s is None:
        raise InputError(
            f"{video_id} step {action.place}: the corpus doesn't say when its mistake can be seen; "
            "only simulated ones do, take mistake time end or middle"
        )
    return action.seen_s


@dataclass
class _Script:
    """The messages so far, the plan before each of them, and the plan now."""

    video_id: str
    recipe: Recipe
    plan: Plan
    mistake_time: MistakeTime
    notes: Notes
    messages: list[Message] = field(default_factory=list)
    before: list[Plan] = field(default_factory=list)
    instructed_s: float = 0.0

    def say(self, message: Message) -> None:
        self.messages.append(message)
        self.before.append(self.plan)

    def instruct(self, time_s: float) -> None:
        step = self.plan.current
        self.instructed_s = time_s
        text = self.recipe.instruction(step)
        self.say(Message(time_s=time_s, kind="instruction", text=text, actions=step))

    def feedback(self, group: Group, instructed: set[str]) -> None:
        """Say what is to be said of a group, in order of time: mistakes, successes, then silent ends."""
        events: list[tuple[float, int, Message | None, str | None]] = []
        for node, action in group:
            events += self._events(node, action, aligned=node in instructed)
        for _, _, message, done in sorted(events, key=lambda event: event[:2]):
            if message is not None:
                self.say(message)
            if done is not None:
                self.plan = self.plan.without([done])

    def _events(
        self, node: str, action: Action, *, aligned: bool
    ) -> list[tuple[float, int, Message | None, str | None]]:
        end_s = self._not_before_instruction(action.end_s, action)
        if not action.mistakes:
            return [(end_s, 1 if aligned else 0, self._success(end_s, node, aligned=aligned), node)]
        time_s = end_s
        if self.mistake_time == "middle":
            time_s = max((action.start_s + action.end_s) / 2, self.instructed_s)
        elif self.mistake_time == "exact":
            time_s = max(min(_seen_s(action, self.video_id), end_s), self.instructed_s)
        said = [(time_s, 0, self._mistake(time_s, node, tag, aligned=aligned), None) for tag in action.mistakes]
        if time_s < end_s:
            return [*said, (end_s, 2, None, node)]
        return [(*said[0][:3], node), *said[1:]]

    def _not_before_instruction(self, time_s: float, action: Action) -> float:
        if time_s < self.instructed_s:
            place = f"{self.video_id} step {action.place}"
            self.notes.add("feedback moved to its instruction: the action ended before", place)
        return max(time_s, self.instructed_s)

    def _success(self, time_s: float, node: str, *, aligned: bool) -> Message:
        text = self.recipe[node].text
        if aligned:
            return Message(time_s=time_s, kind="success", text=success_text(text), aligned=True, actions=(node,))
        return Message(time_s=time_s, kind="divergence", text=divergence_text(text), aligned=False, actions=(node,))

    def _mistake(self, time_s: float, node: str, tag: Tag, *, aligned: bool) -> Message:
        text = self.recipe[node].text
        return Message(
            time_s=time_s,
            kind="mistake" if aligned else "divergence",
            text=mistake_text(tag.text, text) if aligned else divergence_text(text, tag.text),
            aligned=aligned,
            category=MISTAKE_TAGS[tag.name],
            actions=(node,),
        )

    def timeline(self, activity: str) -> Timeline:
        return Timeline(
            video_id=self.video_id,
            activity=activity,
            messages=tuple(self.messages),
            plans=(*self.before[1:], self.plan),
            recipe=self.recipe,
        )
