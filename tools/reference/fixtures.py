"""The tiny models of tests/golden/models: one config.json each, as users' folders have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Config = dict[str, Any]

LLAMA: Config = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_act": "silu",
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 64,
    "vocab_size": 97,
    "max_position_embeddings": 64,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": False,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}
QWEN2: Config = {
    **{k: v for k, v in LLAMA.items() if k not in ("attention_bias", "mlp_bias")},
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "rms_norm_eps": 1e-6,
    "rope_theta": 1000000.0,
    "use_sliding_window": False,
    "sliding_window": 4,
    "max_window_layers": 2,
}
GPT2: Config = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "activation_function": "gelu_new",
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "n_ctx": 64,
    "vocab_size": 97,
    "layer_norm_epsilon": 1e-5,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "resid_pdrop": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "float32",
}


@dataclass(frozen=True)
class Fixture:
    """config: the folder's config.json; batch, seq: shape of each case.

    stride: gradients and final weights with more than `full_up_to` elements are stored
    as every stride-th element of the flattened tensor, which meets every column.
    """

    config: Config
    batch: int = 2
    seq: int = 16
    stride: int = 5
    full_up_to: int = 512
    notes: str = field(default="", compare=False)


def llama(notes: str, **changes: Any) -> Fixture:
    return Fixture({**LLAMA, **changes}, notes=notes)


def without(config: Config, *keys: str) -> Config:
    return {k: v for k, v in config.items() if k not in keys}


FIXTURES: dict[str, Fixture] = {
    "llama_untied": llama("F-L"),
    "llama_tied": llama("F-L with tied head", tie_word_embeddings=True),
    "llama_head16": Fixture(
        {
            **without(LLAMA, "rope_theta"),
            "head_dim": 16,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1000000.0},
        },
        notes="F-L with head_dim 16 (CK-17), rope base in rope_parameters only (CK-19)",
    ),
    "llama_rope_linear": llama(
        "F-L, linear rope scaling under the old key `type`",
        rope_scaling={"type": "linear", "factor": 2.0},
    ),
    "llama_rope_llama3": Fixture(
        {
            **LLAMA,
            "head_dim": 16,
            "rope_scaling": {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 32,
            },
        },
        seq=48,
        notes="llama3 rope scaling: unchanged, blended and divided frequencies all occur",
    ),
    "llama_rope_yarn": Fixture(
        {
            **LLAMA,
            "head_dim": 16,
            "rope_scaling": {
                "rope_type": "yarn",
                "factor": 4.0,
                "original_max_position_embeddings": 16,
            },
        },
        seq=48,
        notes="yarn rope scaling with the default attention factor",
    ),
    "llama_gqa": Fixture(
        {
            **LLAMA,
            "hidden_size": 64,
            "num_attention_heads": 8,
            "intermediate_size": 96,
            "vocab_size": 130,
        },
        stride=11,
        notes="grouped queries 4:1, vocabulary 130",
    ),
    "qwen2_untied": Fixture(QWEN2, notes="F-Q; sliding_window is set but not used (CK-29)"),
    "qwen2_tied": Fixture(
        {
            **without(QWEN2, "sliding_window", "max_window_layers"),
            "tie_word_embeddings": True,
        },
        notes="F-Q with tied head (CK-06)",
    ),
    "qwen2_window": Fixture(
        {**QWEN2, "use_sliding_window": True, "max_window_layers": 1},
        notes="F-Q; the second layer sees a window of 4 tokens",
    ),
    "gpt2": Fixture(GPT2, notes="F-G"),
}
