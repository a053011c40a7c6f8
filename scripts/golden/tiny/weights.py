"""Owns the weights of the tiny models: drawn from a fixed seed, large enough that every input matters."""

import torch

HIDDEN = 16

# A trained model's attention is peaked and its biases are not zero. Weights of the usual starting size would give nearly
# the same vector for every text, and a wrong mask or a wrong position would not show. What is added to a token's own
# row is kept smaller, so that the tokens of a text stay different.
SPREAD = {"embeddings": 1.0, "matrix": 0.4, "added": 0.15, "bias": 0.1, "norm": 0.2}
ADDED = ("output.dense.weight", "o_proj.weight", "down_proj.weight")


def draw(module, seed):
    """Fill every parameter, in the order of its name."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in sorted(module.named_parameters()):
            noise = torch.randn(parameter.shape, generator=generator)
            lowered = name.lower()
            if "norm" in lowered:
                parameter.copy_(SPREAD["norm"] * noise + (1.0 if lowered.endswith("weight") else 0.0))
            elif "embed" in lowered:
                parameter.copy_(SPREAD["embeddings"] * noise)
            elif name.endswith(ADDED):
                parameter.copy_(SPREAD["added"] * noise)
            else:
                parameter.copy_(SPREAD["bias" if parameter.dim() == 1 else "matrix"] * noise)
    return module.eval()


def create(model_class, config, seed):
    """A model of this class with drawn weights and the attention that can be exported."""
    model = model_class._from_config(config, attn_implementation="eager")
    draw(model, seed)
    if hasattr(model, "tie_weights"):
        model.tie_weights()
    return model
