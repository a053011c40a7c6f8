"""Owns the reranker that answers yes or no: a decoder's logits of two words behind a prompt."""

import torch
from transformers import Qwen2ForCausalLM

from . import graphs
from .corpus import PASSAGES, QUERIES
from .decoder import DECODER_INPUTS, qwen_config
from .dense import ROWS
from .folders import write_model
from .records import write_json
from .vocabularies import byte_level
from .weights import create

MAX_TOKENS = 320
INSTRUCTION = "Given a web search query, retrieve relevant passages that answer the query"
PREFIX = (
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct provided. "
    'Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
)
SUFFIX = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
BODY = "<Instruct>: {instruction}\n<Query>: {query}\n<Document>: {document}"

# The form that the chat template of such a model has: a system turn, and a user turn of query and document.
CHAT_TEMPLATE = (
    "{%- for message in messages -%}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{%- endfor -%}"
    "{%- if add_generation_prompt -%}<|im_start|>assistant\n<think>\n\n</think>\n\n{%- endif -%}"
)


def causal_logits(model, feeds):
    return model(**feeds, use_cache=False).logits


def make(place):
    name = "generative-reranker"
    folder = place.folder(name)
    tiny = byte_level(closing=False, max_tokens=MAX_TOKENS)
    tiny.config["chat_template"] = CHAT_TEMPLATE
    tokenizer = tiny.tokenizer
    yes, no = tokenizer.token_to_id("yes"), tokenizer.token_to_id("no")
    assert None not in (yes, no) and tokenizer.encode("yes").ids == [yes] and tokenizer.encode("no").ids == [no]
    model = create(Qwen2ForCausalLM, qwen_config(tiny, tie_word_embeddings=True), seed=80)
    write_model(folder, model, tiny)
    path = folder / "onnx" / "model.onnx"
    graphs.export(model, causal_logits, DECODER_INPUTS, {"logits": ROWS}, path, pad_id=model.config.pad_token_id)

    prefix, suffix = tokenizer.encode(PREFIX).ids, tokenizer.encode(SUFFIX).ids
    room = MAX_TOKENS - len(prefix) - len(suffix)
    records = []
    for query in QUERIES:
        for passage in PASSAGES:
            body = tokenizer.encode(BODY.format(instruction=INSTRUCTION, query=query, document=passage)).ids
            ids = prefix + body[:room] + suffix
            feeds = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
            with torch.no_grad():
                last = causal_logits(model, feeds)[0, -1]
            pair = last[[no, yes]]
            records.append(
                {
                    "query": query,
                    "passage": passage,
                    "ids": ids,
                    "tokensBeforeTruncation": len(prefix) + len(body) + len(suffix),
                    "logits": [float(value) for value in pair],
                    "score": float(torch.softmax(pair, dim=0)[1]),
                }
            )
    rows = [(record["ids"], None) for record in records[::3]]
    check = {
        side: graphs.compare(
            path, model, causal_logits, rows, model.config.pad_token_id, DECODER_INPUTS, ["logits"], left=side == "left"
        )
        for side in ("left", "right")
    }
    write_json(folder / "generation_config.json", {"eos_token_id": tokenizer.token_to_id("<|im_end|>")})
    place.keep(
        name,
        records,
        task="rerank (llm)",
        expect="served as method llm where the catalogue gives template and words",
        what=f"Qwen2ForCausalLM, logits [batch, sequence, vocabulary]; at most {MAX_TOKENS} tokens, the body is cut at its end",
        template={
            "prefix": PREFIX,
            "body": BODY,
            "suffix": SUFFIX,
            "instruction": INSTRUCTION,
            "positive": "yes",
            "negative": "no",
        },
        holds="rerank: ids, logits = [no, yes] of the last token, score = softmax of the two, that of yes",
        graphs={"onnx/model.onnx": graphs.describe(path)},
        onnxMaxAbsDiff={"onnx/model.onnx": check},
        tolerance={"logits": 1e-4, "score": 1e-5},
    )
