"""The network, from pixels and tokens to logits and state."""
