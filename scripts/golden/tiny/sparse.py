"""Owns the sparse models: SPLADE on a masked-LM, and one whose queries need no encoder (a weight for each term)."""

import shutil

import torch
from safetensors.torch import save_file
from sentence_transformers import SparseEncoder
from transformers import BertForMaskedLM

from . import graphs
from .corpus import FEW_TEXTS, TEXTS, texts_around_limit
from .dense import INPUTS, MAX_TOKENS, ROWS, bert_config, rows_for_check, token_facts
from .folders import write_model, write_modules, write_tokenizer
from .records import write_json
from .vocabularies import wordpiece
from .weights import create

PACKAGE = "sentence_transformers.sparse_encoder.models"
SPARSE_TOLERANCE = {"values": 1e-4, "terms": "exact, where the value is over 1e-4"}


# Without its model_type sentence-transformers takes the folder for a dense model and adds an untrained auto-encoder.
SPARSE_CONFIG = {
    "model_type": "SparseEncoder",
    "prompts": {"query": "", "document": ""},
    "default_prompt_name": None,
    "similarity_fn_name": "dot",
}


def pooled(model, ids, activation):
    """Max over tokens of log(1 + relu(logit)), once more log(1 + x) for log1p_relu."""
    feeds = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    with torch.no_grad():
        terms = torch.log1p(torch.relu(model(**feeds).logits[0])).max(dim=0).values
    return torch.log1p(terms) if activation == "log1p_relu" else terms


def check_formula(records, model, activation):
    for record in records:
        terms = pooled(model, record["ids"], activation)
        values = torch.zeros_like(terms).index_put((torch.tensor(record["indices"]),), torch.tensor(record["values"]))
        assert float((terms - values).abs().max()) < 1e-5, record["text"]


def sparse_record(model, text, kind):
    encode = {"query": model.encode_query, "document": model.encode_document}.get(kind, model.encode)
    vector = encode(text, convert_to_sparse_tensor=False, show_progress_bar=False)
    indices = torch.nonzero(vector).flatten()
    return {"indices": indices.tolist(), "values": [float(value) for value in vector[indices]]}


def sparse_records(folder, texts):
    model = SparseEncoder(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})

    def count(text):
        return token_facts(model, text)["tokensBeforeTruncation"]

    texts = [*texts, *texts_around_limit(count, MAX_TOKENS)]
    return [
        {"text": text, "kind": None, **token_facts(model, text), **sparse_record(model, text, None)} for text in texts
    ]


def create_masked_lm(tiny, seed):
    model = create(BertForMaskedLM, bert_config(tiny), seed)
    with torch.no_grad():
        # Most terms of a text have no weight.
        model.cls.predictions.bias -= 7.0
    return model


def make(place):
    tiny = wordpiece()
    model = create_masked_lm(tiny, seed=40)
    for name, activation in [("bert-splade", "relu"), ("bert-splade-log1p", "log1p_relu")]:
        folder = place.folder(name)
        write_model(folder, model, tiny)
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
        write_modules(folder, [("", f"{PACKAGE}.MLMTransformer"), ("1_SpladePooling", f"{PACKAGE}.SpladePooling")])
        pooling = {
            "pooling_strategy": "max",
            "activation_function": activation,
            "word_embedding_dimension": model.config.vocab_size,
        }
        write_json(folder / "1_SpladePooling" / "config.json", pooling)
        write_json(folder / "config_sentence_transformers.json", SPARSE_CONFIG)
        path = folder / "onnx" / "model.onnx"
        facts = {}
        if activation == "relu":
            graphs.export(model, graphs.with_added_mask(graphs.logits), INPUTS, {"logits": ROWS}, path)
        else:
            shutil.copytree(place.build / "bert-splade" / "onnx", folder / "onnx")
            facts["sharesGraphWith"] = "bert-splade"
        records = sparse_records(folder, TEXTS if activation == "relu" else FEW_TEXTS)
        check_formula(records, model, activation)
        if activation == "relu":
            check = graphs.compare(path, model, graphs.logits, rows_for_check(records), 0, INPUTS, ["logits"])
            facts |= {
                "graphs": {"onnx/model.onnx": graphs.describe(path)},
                "onnxMaxAbsDiff": {"onnx/model.onnx": check},
            }
        place.keep(
            name,
            records,
            task="embed/sparse",
            expect="served",
            what="BertForMaskedLM, SpladePooling max of "
            + ("log(1 + relu)" if activation == "relu" else "log(1 + log(1 + relu))"),
            holds="embed/sparse: term ids with a weight over zero, ascending, and the weights",
            tolerance=SPARSE_TOLERANCE,
            **facts,
        )
    make_inference_free(place, model, tiny)


def make_inference_free(place, model, tiny):
    """Documents go through the masked-LM, queries are the weights of their terms (a Router of sentence-transformers)."""
    name = "sparse-inference-free"
    folder = place.folder(name)
    document, query = "document_0_MLMTransformer", "query_0_SparseStaticEmbedding"
    write_model(folder, model, tiny)
    # The encoder lies in a folder of its own in this layout, and at the root in the one of the hub: here it is both.
    write_model(folder / document, model, tiny)
    write_json(folder / document / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
    pooling = {
        "pooling_strategy": "max",
        "activation_function": "log1p_relu",
        "word_embedding_dimension": model.config.vocab_size,
    }
    write_json(folder / "document_1_SpladePooling" / "config.json", pooling)
    generator = torch.Generator().manual_seed(41)
    weight = torch.rand(model.config.vocab_size, generator=generator) * 5
    weight[tiny.tokenizer.token_to_id("[UNK]")] = 0
    (folder / query).mkdir()
    save_file({"weight": weight}, str(folder / query / "model.safetensors"))
    write_json(folder / query / "config.json", {"frozen": False})
    write_tokenizer(folder / query, tiny)
    write_modules(folder, [("", "sentence_transformers.models.Router")])
    write_json(folder / "config_sentence_transformers.json", SPARSE_CONFIG)
    write_json(
        folder / "router_config.json",
        {
            "types": {
                query: f"{PACKAGE}.SparseStaticEmbedding.SparseStaticEmbedding",
                document: f"{PACKAGE}.MLMTransformer.MLMTransformer",
                "document_1_SpladePooling": f"{PACKAGE}.SpladePooling.SpladePooling",
            },
            "structure": {"query": [query], "document": [document, "document_1_SpladePooling"]},
            "parameters": {"default_route": "document", "allow_empty_key": True},
        },
    )
    shutil.copytree(place.build / "bert-splade" / "onnx", folder / "onnx")
    reference = SparseEncoder(str(folder), device="cpu")
    tokenizer = tiny.tokenizer
    records = []
    for text in FEW_TEXTS:
        for kind in ("query", "document"):
            encoded = tokenizer.encode(text, add_special_tokens=kind == "document").ids
            kept = (
                encoded if kind == "query" or len(encoded) <= MAX_TOKENS else [*encoded[: MAX_TOKENS - 1], encoded[-1]]
            )
            records.append({"text": text, "kind": kind, "ids": kept, **sparse_record(reference, text, kind)})
    check_formula([record for record in records if record["kind"] == "document"], model, "log1p_relu")
    (folder / document / "model.safetensors").unlink()
    place.keep(
        name,
        records,
        task="embed/sparse",
        expect="served, or refused naming Router",
        what="a Router: documents through the masked-LM (log1p_relu), queries by query_0_SparseStaticEmbedding: the weight of "
        "each distinct token, no special tokens, no limit of length",
        holds="embed/sparse by kind",
        sharesGraphWith="bert-splade",
        tolerance=SPARSE_TOLERANCE,
    )
