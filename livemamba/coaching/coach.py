"""The plan logic: events, re-planned plans and user events in; messages and requests out. No torch.

No I/O, no thread, no model call, no clock: what comes out depends on what went in and on nothing else, so
the same coach runs live, in evaluation, in the simulator and in the server. Source: paper sections 3 and
4.1, spec/model.md (protocol, re-planner).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from livemamba.coaching.events import Event, Finished, StartStep, in_order
from livemamba.coaching.memory import Memory
from livemamba.coaching.replanner import ReplanRequest, ReplanResult
from livemamba.errors import InputError
from livemamba.recipe import Plan, Recipe, Step
from livemamba.ticks import tick_at_or_before, tick_to_s
from livemamba.timeline import FINISH_TEXT, Message, Timeline, UserEvent

Output = Message | StartStep | ReplanRequest | Finished
Outputs = tuple[Output, ...]
InstructionText = Callable[[Step], str] | Mapping[Step, str]

CoachState = Literal["ready", "watching", "waiting", "paused", "finished"]


class Coach:
    """Leads one person through one recipe.

    The current step leaves the plan when the watcher says `advance`, and by nothing else the watcher says:
    a success closes an action, not the step. A watcher that never says advance never moves on.

    A divergence asks for a new plan. The step still ends with its advance; then the re-planned plan says
    what is asked for, the same instruction again or another. Unless the watcher reported a success after
    the divergence, the step that was asked for does not count as done. If the advance comes before the
    answer, the coach waits, and nothing is judged meanwhile.

    Times never go back in the log: a message due before the latest one gets that one's time.

    Args:
        recipe: steps and graph.
        plan: what to do; default the recipe's own order.
        instruction_text: the sentence for a step, by function or mapping (at evaluation the coach says the
            row's own). A step that the mapping lacks, such as the rest of a compound one, is asked for in
            the recipe's words and counted.
        replanning: False for the ablation: a divergence is only said, and advance moves on.

    Raises:
        InputError: if the plan is empty or names what isn't in the recipe.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        plan: Plan | None = None,
        instruction_text: InstructionText | None = None,
        replanning: bool = True,
    ) -> None:
        plan = recipe.plan if plan is None else plan
        if not plan:
            raise InputError(f"recipe {recipe.name!r}: the plan is empty; give at least one step to coach")
        _check_nodes(plan.node_ids, recipe)
        self.recipe = recipe
        self._sentences = instruction_text
        self._replanning = replanning
        self._now = Memory(plan=plan)

    # --- looking -------------------------------------------------------------------------------------

    @property
    def plan(self) -> Plan:
        """What is left to do, the current step in front."""
        return self._now.plan

    @property
    def done(self) -> tuple[str, ...]:
        """Node ids in the order in which they were done."""
        return self._now.done

    @property
    def step(self) -> Step:
        """The step asked for last."""
        return self._now.step

    @property
    def instruction(self) -> str:
        """The sentence in which it was asked for; empty before the start."""
        return self._now.instruction

    @property
    def state(self) -> CoachState:
        """Ready (not started), watching, waiting (for a re-planned plan), paused or finished."""
        now = self._now
        return "paused" if now.paused and now.phase in ("watching", "waiting") else now.phase

    @property
    def open_request(self) -> ReplanRequest | None:
        """The question whose answer would be taken now."""
        return self._now.request

    @property
    def counts(self) -> dict[str, int]:
        """How often something was ignored or refused, by reason."""
        return dict(self._now.counts)

    def timeline(self, video_id: str) -> Timeline:
        """The log so far; each message with what was left to do just after it."""
        now = self._now
        return Timeline(
            video_id=video_id,
            activity=self.recipe.name,
            messages=tuple(now.messages),
            plans=tuple(now.plans),
            recipe=self.recipe,
            user_events=tuple(now.user_events),
        )

    def outstanding(self, tick: int) -> Outputs:
        """What a driver must have done to take up a loaded coach: start the watcher, ask the open question."""
        now = self._now
        outputs: list[Output] = []
        if now.phase == "watching":
            outputs.append(StartStep(plan=now.plan, instruction=now.instruction, tick=tick))
        return (*outputs, now.request) if now.request is not None else tuple(outputs)

    # --- the watcher's side --------------------------------------------------------------------------

    def start(self, tick: int) -> Outputs:
        """The first instruction.

        Raises:
            InputError: if the coach has been started already.
        """
        if self._now.phase != "ready":
            raise InputError(f"this coach is {self.state}, started before; make a new one for a new session")
        return self._next(tick, tick_to_s(tick))

    def on_events(self, events: Iterable[Event]) -> Outputs:
        """What follows from all that a watcher said of one frame, in the order feedback, success, advance."""
        return tuple(output for event in in_order(events) for output in self.on_event(event))

    def on_event(self, event: Event) -> Outputs:
        """What follows from one event."""
        now = self._now
        if ignored := self._why_deaf(event.tick):
            now.counts[ignored] += 1
            return ()
        now.heard_tick = max(now.heard_tick, event.tick)
        if event.kind == "advance":
            return self._on_advance(event.tick)
        if event.kind == "divergence":
            return self._on_divergence(event)
        others = [node for node in event.actions or () if node not in now.step]
        now.counts.update(["action of another step"] * len(others))
        self._mark_done(node for node in event.actions or () if node in now.step)
        if event.kind == "success" and event.actions is None and self._diverged_before(event.tick):
            now.diverged_tick = None
        return (self._say(event.message(tick_to_s(event.tick))),)

    def _why_deaf(self, tick: int) -> str | None:
        if self.state != "watching":
            return f"event while {self.state}"
        return "event of an earlier step" if tick < self._now.open_tick else None

    def _diverged_before(self, tick: int) -> bool:
        return self._now.diverged_tick is not None and self._now.diverged_tick < tick

    def _on_advance(self, tick: int) -> Outputs:
        if self._now.request is not None:
            self._now.phase = "waiting"
            return ()
        return self._end_step(tick)

    def _on_divergence(self, event: Event) -> Outputs:
        now = self._now
        message = self._say(event.message(tick_to_s(event.tick)))
        if not self._replanning:
            return (message,)
        if now.request is not None:
            now.counts["question replaced by a newer one"] += 1
        now.diverged_tick = event.tick
        now.num_requests += 1
        now.request = ReplanRequest(
            id=now.num_requests,
            plan=now.plan,
            done=now.done,
            step=now.step,
            instruction=now.instruction,
            feedback=event.text,
            tick=event.tick,
            actions=event.actions,
        )
        return message, now.request

    # --- the re-planner's side -----------------------------------------------------------------------

    def on_replan(self, request_id: int, result: ReplanResult, tick: int) -> Outputs:
        """An answer: applied whole, or refused and counted; late ones are ignored and counted.

        Args:
            request_id: of the request that it answers.
            result: the answer.
            tick: when it arrived.
        """
        request = self._take_request(request_id, "late re-plan result")
        if request is None:
            return ()
        refusal = self._why_refused(request, result)
        if refusal:
            self._now.counts[f"re-plan refused: {refusal}"] += 1
        else:
            self._apply(request, result)
        return self._after_answer(tick)

    def on_replan_failed(self, request_id: int, reason: str, tick: int) -> Outputs:
        """No answer will come: the plan stays, the instruction is repeated when the step ends.

        Args:
            request_id: of the request that failed.
            reason: one of a few, it is counted by.
            tick: when this was known.
        """
        if self._take_request(request_id, "late re-plan failure") is None:
            return ()
        self._now.counts[f"re-plan failed: {reason}"] += 1
        return self._after_answer(tick)

    def _take_request(self, request_id: int, if_late: str) -> ReplanRequest | None:
        request = self._now.request
        if request is None or request.id != request_id:
            self._now.counts[if_late] += 1
            return None
        self._now.request = None
        return request

    def _why_refused(self, request: ReplanRequest, result: ReplanResult) -> str | None:
        plan: object = result.plan  # a replanner of other people's may put anything there
        if not isinstance(plan, Plan):
            return "not a plan"
        if any(node not in self.recipe for node in (*plan.node_ids, *result.done_step)):
            return "steps of another recipe"
        if set(plan.node_ids) & {*request.done, *result.done_step}:
            return "steps already done"
        return None

    def _apply(self, request: ReplanRequest, result: ReplanResult) -> None:
        now = self._now
        if not result.done_step:
            now.counts["re-plan: step not recognised"] += 1
        # What was done while the answer was on its way isn't asked for again.
        now.plan = result.plan.without(set(now.done) - set(request.done))
        self._mark_done(result.done_step)

    def _after_answer(self, tick: int) -> Outputs:
        # In a pause the instruction is held back until the user resumes.
        if self._now.phase == "waiting" and not self._now.paused:
            return self._end_step(tick)
        return ()

    # --- the user's side -----------------------------------------------------------------------------

    def on_user(self, event: UserEvent) -> Outputs:
        """What follows from a wish of the user.

        skip: the step leaves the plan without being done. done: it leaves as done. back: the step that left
        last, done or not, comes back in front; this works after the finish too. These three close an open
        question and give the next instruction, in a pause as well, which they don't end. repeat: the
        instruction is said again, the watcher goes on. pause, resume: in between nothing is judged.

        Times are on the frames' clock. Of a step that the user's wish began, the first frame after it counts.
        """
        now = self._now
        time_s = max([event.time_s, *(earlier.time_s for earlier in now.user_events[-1:])])
        now.user_events.append(UserEvent(time_s=time_s, action=event.action))
        if now.phase == "ready" or (now.phase == "finished" and event.action != "back"):
            now.counts[f"user event while {now.phase}"] += 1
            return ()
        if event.action in ("pause", "resume"):
            return self._on_pause(event.action == "pause", time_s)
        if event.action == "repeat":
            return (self._instruction(time_s),)
        if event.action == "back":
            return self._on_back(time_s)
        if event.action == "done":
            self._mark_done(now.step)
        now.plan = now.plan.without(now.step)
        now.left = (*now.left, now.step)
        return self._next(_tick_after(time_s), time_s)

    def _on_pause(self, pause: bool, time_s: float) -> Outputs:
        now = self._now
        if now.paused == pause:
            now.counts["pause while paused" if pause else "resume without a pause"] += 1
        now.paused = pause
        if not pause and now.phase == "waiting" and now.request is None:
            return self._end_step(_tick_after(time_s), time_s)
        return ()

    def _on_back(self, time_s: float) -> Outputs:
        now = self._now
        if not now.left:
            now.counts["back at the first step"] += 1
            return ()
        *left, step = now.left
        now.left = tuple(left)
        now.done = tuple(node for node in now.done if node not in step)
        now.plan = now.plan.without(step).with_first(step)
        return self._next(_tick_after(time_s), time_s)

    # --- shared --------------------------------------------------------------------------------------

    def _mark_done(self, nodes: Iterable[str]) -> None:
        now = self._now
        nodes = tuple(nodes)
        now.done += tuple(node for node in dict.fromkeys(nodes) if node not in now.done)
        now.plan = now.plan.without(nodes)

    def _end_step(self, tick: int, time_s: float | None = None) -> Outputs:
        now = self._now
        if now.diverged_tick is None:
            self._mark_done(now.step)
        if not set(now.step) & set(now.plan.node_ids):
            now.left = (*now.left, now.step)
        return self._next(tick, tick_to_s(tick) if time_s is None else time_s)

    def _next(self, tick: int, time_s: float) -> Outputs:
        now = self._now
        now.diverged_tick = now.request = None
        if not now.plan:
            now.phase = "finished"
            return self._say(Message(time_s=time_s, kind="finish", text=FINISH_TEXT)), Finished(tick=tick)
        now.phase = "watching"
        now.step = now.plan.current
        now.instruction = self._sentence(now.step)
        # A frame that has been judged for the step before says nothing about this one.
        now.open_tick = max(tick, now.heard_tick + 1)
        return self._instruction(time_s), StartStep(plan=now.plan, instruction=now.instruction, tick=tick)

    def _instruction(self, time_s: float) -> Message:
        now = self._now
        return self._say(Message(time_s=time_s, kind="instruction", text=now.instruction, actions=now.step))

    def _sentence(self, step: Step) -> str:
        if callable(self._sentences):
            return self._sentences(step)
        if self._sentences is not None:
            if step in self._sentences:
                return self._sentences[step]
            self._now.counts["instruction in the recipe's words"] += 1
        return self.recipe.instruction(step)

    def _say(self, message: Message) -> Message:
        now = self._now
        if now.messages and message.time_s < now.messages[-1].time_s:
            message = replace(message, time_s=now.messages[-1].time_s)
        now.messages.append(message)
        now.plans.append(now.plan)
        return message

    # --- saving --------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: all that the coach remembers. The recipe and the sentences are given again on loading."""
        return {"recipe": self.recipe.name, "replanning": self._replanning, **self._now.to_dict()}

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], recipe: Recipe, *, instruction_text: InstructionText | None = None
    ) -> "Coach":
        """The inverse of `to_dict`: a coach that goes on exactly where the saved one stood.

        Raises:
            InputError: if the data aren't a saved coach, or of another recipe.
        """
        rest = {name: value for name, value in data.items() if name not in ("recipe", "replanning")}
        memory = Memory.from_dict(rest)
        if data.get("recipe") != recipe.name:
            raise InputError(f"coach saved in recipe {data.get('recipe')!r}; it can't go on in {recipe.name!r}")
        _check_nodes((*memory.plan.node_ids, *memory.done, *memory.step), recipe)
        coach = cls(recipe, instruction_text=instruction_text, replanning=data.get("replanning") is not False)
        coach._now = memory
        return coach


def _tick_after(time_s: float) -> int:
    # A frame that was on screen when the user spoke may still be with the watcher: it belongs to the step before.
    return tick_at_or_before(time_s) + 1


def _check_nodes(nodes: Iterable[str], recipe: Recipe) -> None:
    for node in nodes:
        recipe[node]  # raises, naming the recipe's steps
