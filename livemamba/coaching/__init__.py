"""Coaching: the plan logic and what drives it. No torch; models come in as a `StepWatcher`."""
