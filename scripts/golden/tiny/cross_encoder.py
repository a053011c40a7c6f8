"""Owns the cross-encoders: one label (a reranker), two labels, five labels (no reranker), and XLM-R's pairs."""

import torch
from sentence_transformers import CrossEncoder
from transformers import BertForSequenceClassification, XLMRobertaForSequenceClassification

from . import graphs
from .corpus import PASSAGES, QUERIES
from .dense import INPUTS, bert_config
from .folders import write_model
from .vocabularies import unigram, wordpiece
from .weights import create
from .xlmr import XLMR_INPUTS, xlmr_config

MAX_TOKENS = 64
LOGIT_TOLERANCE = {"logits": 1e-4, "score": 1e-5}


def pair_records(folder, model, max_tokens):
    """Each query with each passage; only the passage is cut."""
    reference = CrossEncoder(str(folder), device="cpu")
    tokenizer = reference.tokenizer.backend_tokenizer
    has_types = "token_type_ids" in reference.tokenizer.model_input_names
    records = []
    for query in QUERIES:
        for passage in PASSAGES:
            tokenizer.no_padding()
            tokenizer.no_truncation()
            total = len(tokenizer.encode(query, passage).ids)
            # Not `longest_first`: a query is kept whole. The two agree wherever the passage stays the longer one.
            tokenizer.enable_truncation(max_tokens, strategy="only_second")
            encoding = tokenizer.encode(query, passage)
            feeds = {
                "input_ids": torch.tensor([encoding.ids]),
                "attention_mask": torch.ones(1, len(encoding.ids), dtype=torch.long),
            }
            if has_types:
                feeds["token_type_ids"] = torch.tensor([encoding.type_ids])
            with torch.no_grad():
                logits = model(**feeds).logits[0]
            raw = reference.predict([(query, passage)], activation_fn=torch.nn.Identity(), show_progress_bar=False)
            assert abs(torch.as_tensor(raw).reshape(-1) - logits).max() < 1e-5, (query, passage)
            record = {"query": query, "passage": passage, "ids": encoding.ids}
            if has_types:
                record["typeIds"] = encoding.type_ids
            record |= {"tokensBeforeTruncation": total, "logits": [float(value) for value in logits]}
            if len(logits) == 1:
                record["score"] = float(torch.sigmoid(logits[0]))
            records.append(record)
    return records


def make_one(place, name, model, tiny, inputs, pad_id, position_rule, **facts):
    folder = place.folder(name)
    write_model(folder, model, tiny)
    path = folder / "onnx" / "model.onnx"
    graphs.export(model, graphs.with_added_mask(graphs.logits), inputs, {"logits": {0: "batch"}}, path, pad_id=pad_id)
    records = pair_records(folder, model, MAX_TOKENS)
    rows = [(record["ids"], record.get("typeIds")) for record in records]
    check = graphs.compare(path, model, graphs.logits, rows, pad_id, inputs, ["logits"], position_rule=position_rule)
    place.keep(
        name,
        records,
        task="rerank",
        holds="rerank: ids of the pair (only the passage cut), logits, and score = sigmoid(logit) where there is one label",
        graphs={"onnx/model.onnx": graphs.describe(path)},
        onnxMaxAbsDiff={"onnx/model.onnx": check},
        tolerance=LOGIT_TOLERANCE,
        **facts,
    )


def make(place):
    tiny = wordpiece(max_tokens=MAX_TOKENS)
    for name, labels, expect in [
        ("cross-encoder-1", None, "served"),
        ("cross-encoder-2", {0: "irrelevant", 1: "relevant"}, "refused unless the catalogue names the positive label"),
        ("cross-encoder-5", {i: f"{i + 1} stars" for i in range(5)}, "refused at start: five labels"),
    ]:
        more = (
            {"num_labels": 1} if labels is None else {"id2label": labels, "label2id": {v: k for k, v in labels.items()}}
        )
        model = create(BertForSequenceClassification, bert_config(tiny, **more), seed=10 + len(labels or [0]))
        what = (
            f"BERT with {len(labels or [0])} label(s); the limit is model_max_length and positions, both {MAX_TOKENS}"
        )
        make_one(place, name, model, tiny, INPUTS, 0, "mask", expect=expect, what=what)

    tiny = unigram(max_tokens=MAX_TOKENS)
    model = create(XLMRobertaForSequenceClassification, xlmr_config(tiny, num_labels=1), seed=20)
    what = "XLM-R with one label: pairs are <s> query </s> </s> passage </s>, no token types, 66 positions of which 64 are usable"
    make_one(place, "cross-encoder-xlmr", model, tiny, XLMR_INPUTS, 1, "padding", expect="served", what=what)
