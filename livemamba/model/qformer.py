"""The Q-Former: learned queries that read a frame's kept tokens and become its embeddings.

Shapes: B frames, K kept tokens, Q queries.
"""

import torch
from torch import Tensor, nn
from transformers import Blip2QFormerConfig, Blip2QFormerModel

from livemamba.config import QFormerConfig


class QFormer(nn.Module):
    """BLIP-2's Q-Former with cross-attention in every layer, then a projection (paper 4.1; spec/model.md).

    Tokens are normed first, as BLIP-2 does: InternViT ends without a norm. All matrices start with a deviation of
    1 / sqrt(hidden_size), so that what the queries read is as large as the queries themselves, at any width;
    with transformers' fixed 0.02 a narrow Q-Former hardly sees the frame and takes very long to learn to look.
    Queries start as normal noise: transformers' own start for BLIP-2 queries is zeros, and queries that start
    equal stay equal. Their size doesn't matter, since a layer norm comes first.

    Args:
        config: queries, layers, widths and dropouts.
        encoder_width: width of the tokens that come in.
        output_width: the backbone's width.

    Attributes:
        norm: of the tokens that come in.
        queries: (Q, hidden_size), learned.
        layers: transformers' Blip2QFormerModel.
        projection: to the backbone's width.
    """

    def __init__(self, config: QFormerConfig, *, encoder_width: int, output_width: int) -> None:
        super().__init__()
        std = config.hidden_size**-0.5
        self.norm = nn.LayerNorm(encoder_width)
        self.queries = nn.Parameter(torch.empty(config.num_queries, config.hidden_size).normal_(std=std))
        self.layers = Blip2QFormerModel(
            Blip2QFormerConfig(
                hidden_size=config.hidden_size,
                num_hidden_layers=config.num_hidden_layers,
                num_attention_heads=config.num_attention_heads,
                intermediate_size=config.intermediate_size,
                hidden_dropout_prob=config.hidden_dropout_prob,
                attention_probs_dropout_prob=config.attention_probs_dropout_prob,
                initializer_range=std,
                cross_attention_frequency=1,
                encoder_hidden_size=encoder_width,
                use_qformer_text_input=False,
            )
        )
        self.projection = nn.Linear(config.hidden_size, output_width)
        nn.init.normal_(self.projection.weight, std=std)
        nn.init.zeros_(self.projection.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """A frame's embeddings from its kept tokens.

        Args:
            tokens: (B, K, encoder_width).

        Returns:
            (B, Q, output_width).
        """
        if not len(tokens):  # transformers' attention takes no empty batch; the gradient still reaches every weight
            nothing: Tensor = self(tokens.new_zeros(1, 1, tokens.shape[2]))[:0]
            return nothing
        queries = self.queries.expand(tokens.shape[0], -1, -1)
        read: Tensor = self.layers(query_embeds=queries, encoder_hidden_states=self.norm(tokens)).last_hidden_state
        projected: Tensor = self.projection(read)
        return projected
