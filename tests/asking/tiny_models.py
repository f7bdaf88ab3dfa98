"""Small random models with a tokenizer of their own. Their weights are large, so that every token matters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    Mamba2Config,
    Mamba2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedTokenizerFast,
)

import statetrack as st
from statetrack.asking import Rules, description

START, END, REPLY = "<|im_start|>", "<|im_end|>", "<|reply|>"
TEMPLATE = (
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LEAN = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ '<|im_start|>' + m['content'] + '<|reply|>' }}"
    "{% else %}{{ m['content'] + '<|im_end|>' }}{% endif %}{% endfor %}"
)


def tokenizer(chat: bool = True, lean: bool = False) -> Any:
    """Byte-level BPE, trained on our own descriptions; with a chat template or without.

    The `lean` one is for measuring: each digit is a token, as SmolLM2 has it, and a turn is framed by three tokens, as
    Mistral has it, so that a turn of Track the Stat adds about 12.
    """
    made = Tokenizer(models.BPE())
    splits = [pre_tokenizers.Digits(individual_digits=True)] if lean else []
    made.pre_tokenizer = pre_tokenizers.Sequence([*splits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    made.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=600, special_tokens=[START, END, REPLY], initial_alphabet=letters, show_progress=False
    )
    texts = [description(st.task(f"track_the_stat.{variant}"), Rules()) for variant in ("median", "mode")]
    texts += [f"user\n{number}\nassistant\n[median: {number}.5]" for number in range(100)] * 20
    made.train_from_iterator(texts, trainer)
    wrapped = PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=END, pad_token=END, additional_special_tokens=[START, REPLY]
    )
    if chat:
        wrapped.chat_template = LEAN if lean else TEMPLATE
    return wrapped


def llama(words: int, width: int = 64, context: int = 8192, **options: Any) -> Any:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=words, hidden_size=width, num_hidden_layers=2, max_position_embeddings=context, eos_token_id=1,
        bos_token_id=None, **{"intermediate_size": 2 * width, "num_attention_heads": 4, "num_key_value_heads": 2,
                              "initializer_range": 0.3, **options},
    )  # fmt: skip
    return LlamaForCausalLM(config)


def mistral(words: int) -> Any:
    """Attention in a sliding window that is shorter than the dialogues."""
    torch.manual_seed(0)
    config = MistralConfig(
        vocab_size=words, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, sliding_window=40, eos_token_id=1, bos_token_id=None,
        initializer_range=0.3,
    )  # fmt: skip
    return MistralForCausalLM(config)


def mamba2(words: int) -> Any:
    torch.manual_seed(0)
    config = Mamba2Config(
        vocab_size=words, hidden_size=64, num_hidden_layers=2, state_size=16, head_dim=16, num_heads=8, expand=2,
        n_groups=1, chunk_size=16, eos_token_id=1, bos_token_id=None, pad_token_id=1, initializer_range=0.3,
    )  # fmt: skip
    return Mamba2ForCausalLM(config)


MODELS = {"llama": llama, "mistral": mistral, "mamba2": mamba2}


def saved(folder: Path) -> Path:
    """A folder with a tiny Llama, as `hf:` takes it."""
    words = tokenizer()
    llama(len(words)).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder
