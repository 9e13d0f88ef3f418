"""Tiny models with a task head."""

import torch
import transformers as hf
from transformers import PreTrainedModel, PreTrainedTokenizerFast

import tiny

HEADS = {
    ("bert", "masked-lm"): hf.BertForMaskedLM,
    ("bert", "causal-lm"): hf.BertLMHeadModel,
    ("bert", "classification"): hf.BertForSequenceClassification,
    ("bert", "tagging"): hf.BertForTokenClassification,
    ("roberta", "masked-lm"): hf.RobertaForMaskedLM,
    ("distilbert", "classification"): hf.DistilBertForSequenceClassification,
    ("electra", "masked-lm"): hf.ElectraForMaskedLM,
    ("albert", "masked-lm"): hf.AlbertForMaskedLM,
    ("modernbert", "masked-lm"): hf.ModernBertForMaskedLM,
    ("gpt2", "causal-lm"): hf.GPT2LMHeadModel,
    ("gpt2", "classification"): hf.GPT2ForSequenceClassification,
    ("llama", "causal-lm"): hf.LlamaForCausalLM,
    ("llama", "tagging"): hf.LlamaForTokenClassification,
    ("qwen3", "causal-lm"): hf.Qwen3ForCausalLM,
    ("mistral", "causal-lm"): hf.MistralForCausalLM,
    ("gemma2", "causal-lm"): hf.Gemma2ForCausalLM,
    ("gpt_oss", "causal-lm"): hf.GptOssForCausalLM,
    ("t5", "causal-lm"): hf.T5ForConditionalGeneration,
    ("bart", "causal-lm"): hf.BartForConditionalGeneration,
    ("bart", "masked-lm"): hf.BartForConditionalGeneration,
    ("mpnet", "masked-lm"): hf.MPNetForMaskedLM,  # without the interface
}


def make(
    family: str, task: str, *, dtype: torch.dtype = torch.float32, spread: float = 1.0
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A tiny model with a task head and its tokenizer; its matrices less wide if asked for, so that rounding is small.

    A classifier knows three labels, of which the documents of `tiny` have two.
    """
    body, tokenizer = tiny.make(family)
    config = body.config
    if task in ("classification", "tagging"):
        config.id2label = dict(enumerate(("negative", "none", "positive")))
        config.label2id = {label: number for number, label in config.id2label.items()}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        module = HEADS[family, task](config).eval()
    module.base_model.load_state_dict(body.state_dict(), strict=False)  # some leave the pooler out
    with torch.no_grad():
        for name, weights in module.named_parameters():
            if weights.ndim > 1 or name.endswith("q_norm.weight"):
                weights.mul_(spread)
    return module.to(dtype), tokenizer
