"""The protocol: tokens, prompts, conversations as token ids, and decisions read back from logits."""
