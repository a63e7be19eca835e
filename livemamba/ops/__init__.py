"""Selective scan and causal convolution: an obvious reference, faster forms, one dispatch."""

from livemamba.ops.dispatch import FORMS, causal_conv, current_form, selective_scan, set_form, use_form

__all__ = ["FORMS", "causal_conv", "current_form", "selective_scan", "set_form", "use_form"]
