"""Owns the dense models on one BERT encoder: every pooling, the modules behind it, prompts and refusals."""

import shutil

import torch
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel

from . import graphs
from .corpus import FEW_TEXTS, TEXTS, texts_around_limit
from .folders import pooling_config, write_model, write_modules, write_weights
from .records import to_base64, write_json
from .vocabularies import wordpiece
from .weights import HIDDEN, create, draw

MAX_TOKENS = 48
POSITIONS = 64
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]
ROWS = {0: "batch", 1: "sequence"}

VECTOR_TOLERANCE = {"cosine": 0.99999, "maxAbs": 1e-5}
# Vectors that are not normalised are longer than one.
LONG_VECTOR_TOLERANCE = {"cosine": 0.99999, "maxAbs": 1e-4}

TRANSFORMER = ("", "sentence_transformers.models.Transformer")
POOLING = ("1_Pooling", "sentence_transformers.models.Pooling")

PROMPTS = {"query": "Represent this question: ", "document": "passage: "}


def bert_config(tiny, **more):
    return BertConfig(
        vocab_size=tiny.tokenizer.get_vocab_size(),
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **more,
    )


def encode_kind(model, text, kind):
    encode = {"query": model.encode_query, "document": model.encode_document}.get(kind, model.encode)
    return encode(text, batch_size=1, show_progress_bar=False)


def prompt_of(model, kind):
    prompts = model.prompts
    names = {"query": ["query"], "document": ["document", "passage", "corpus"]}.get(kind, [])
    for name in names:
        if prompts.get(name):
            return prompts[name]
    return prompts.get(model.default_prompt_name, "") if model.default_prompt_name else ""


def token_facts(model, text):
    """Ids as the reference feeds them, and how many there were before they were cut."""
    ids = [int(i) for i in model.preprocess([text])["input_ids"][0]]
    tokenizer = model.tokenizer.backend_tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()
    total = len(tokenizer.encode(text).ids)
    assert ids == tokenizer.encode(text).ids or len(ids) < total, text
    return {"ids": ids, "tokensBeforeTruncation": total}


def dense_records(folder, texts, kinds=(None,), max_tokens=None):
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})
    if max_tokens is not None:
        model.max_seq_length = max_tokens
    limit = model.max_seq_length

    def count(text):
        return token_facts(model, text)["tokensBeforeTruncation"]

    records = []
    for text in [*texts, *texts_around_limit(count, limit)]:
        for kind in kinds:
            prompt = prompt_of(model, kind)
            facts = token_facts(model, prompt + text)
            vector = encode_kind(model, text, kind)
            records.append({"text": text, "kind": kind, "prompt": prompt, **facts, "vector": to_base64(vector)})
    return records


def rows_for_check(records, most=10):
    """Some token rows of a golden file, short and long ones."""
    ordered = sorted(records, key=lambda record: len(record["ids"]))
    step = max(1, len(ordered) // most)
    return [(record["ids"], record.get("typeIds")) for record in ordered[::step]]


class Family:
    """Folders that share one exported encoder."""

    def __init__(self, place, first, model, tiny):
        self.place, self.first, self.model, self.tiny = place, first, model, tiny

    def folder(self, name, max_tokens=MAX_TOKENS):
        folder = self.place.folder(name)
        write_model(folder, self.model, self.tiny)
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": max_tokens, "do_lower_case": False})
        if name != self.first:
            shutil.copytree(self.place.build / self.first / "onnx", folder / "onnx")
        return folder

    def keep(self, name, records, **facts):
        shared = {} if name == self.first else {"sharesGraphWith": self.first}
        self.place.keep(name, records, **shared, **facts)


def make(place):
    tiny = wordpiece()
    model = create(BertModel, bert_config(tiny), seed=1)
    family = Family(place, "bert-dense", model, tiny)
    holds = "embed: vector of sentence-transformers encode, ids as fed"

    folder = family.folder("bert-dense")
    write_modules(folder, [TRANSFORMER, POOLING, ("2_Normalize", "sentence_transformers.models.Normalize")])
    write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN))
    path = folder / "onnx" / "model.onnx"
    graphs.export(model, graphs.with_added_mask(graphs.last_hidden_state), INPUTS, {"last_hidden_state": ROWS}, path)
    records = dense_records(folder, TEXTS)
    check = graphs.compare(
        path, model, graphs.last_hidden_state, rows_for_check(records), 0, INPUTS, ["last_hidden_state"]
    )
    family.keep(
        "bert-dense",
        records,
        task="embed",
        expect="served",
        what="BERT, mean pooling, Normalize; max_seq_length 48 of 64 positions, model_max_length 1e30",
        holds=holds,
        graphs={"onnx/model.onnx": graphs.describe(path)},
        onnxMaxAbsDiff={"onnx/model.onnx": check},
        tolerance=VECTOR_TOLERANCE,
    )

    for short, modes in [
        ("cls", ["cls"]),
        ("max", ["max"]),
        ("sqrt", ["mean_sqrt_len_tokens"]),
        ("weighted", ["weightedmean"]),
        ("last", ["lasttoken"]),
        ("cls-mean", ["cls", "mean"]),
    ]:
        name = f"bert-pool-{short}"
        folder = family.folder(name)
        write_modules(folder, [TRANSFORMER, POOLING])
        write_json(folder / "1_Pooling" / "config.json", pooling_config(modes, HIDDEN))
        family.keep(
            name,
            dense_records(folder, FEW_TEXTS),
            task="embed",
            expect="served" if len(modes) == 1 else "served with joined vectors, or refused",
            what=f"pooling {' + '.join(modes)}, not normalised",
            holds=holds,
            tolerance=LONG_VECTOR_TOLERANCE,
        )

    make_modules(family, holds)
    make_prompts(family, holds)
    make_odd(family)
    return family


def make_modules(family, holds):
    """A Dense or a LayerNorm between pooling and Normalize."""
    package = "sentence_transformers.models"
    for name, width, activation, file in [
        ("bert-linear", 12, "torch.nn.modules.linear.Identity", "model.safetensors"),
        ("bert-linear-tanh", 12, "torch.nn.modules.activation.Tanh", "model.safetensors"),
        ("bert-linear-bin", 12, "torch.nn.modules.activation.Tanh", "pytorch_model.bin"),
    ]:
        folder = family.folder(name)
        normalized = [] if name == "bert-linear-tanh" else [("3_Normalize", f"{package}.Normalize")]
        write_modules(folder, [TRANSFORMER, POOLING, ("2_Dense", f"{package}.Dense"), *normalized])
        write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN))
        linear = torch.nn.ModuleDict({"linear": draw(torch.nn.Linear(HIDDEN, width), seed=2)})
        config = {"in_features": HIDDEN, "out_features": width, "bias": True, "activation_function": activation}
        write_json(folder / "2_Dense" / "config.json", config)
        if file.endswith(".bin"):
            torch.save(linear.state_dict(), folder / "2_Dense" / file)
        else:
            write_weights(folder / "2_Dense", linear, file)
        family.keep(
            name,
            dense_records(folder, FEW_TEXTS),
            task="embed",
            expect="served" if file.endswith("safetensors") else "served, or refused because its weights are a pickle",
            what=f"mean pooling, 2_Dense {HIDDEN} -> {width} with {activation.split('.')[-1]}, weights in {file}"
            + (", Normalize" if normalized else ", not normalised"),
            holds=holds,
            tolerance=VECTOR_TOLERANCE if normalized else LONG_VECTOR_TOLERANCE,
        )

    name = "bert-layernorm"
    folder = family.folder(name)
    write_modules(
        folder,
        [TRANSFORMER, POOLING, ("2_LayerNorm", f"{package}.LayerNorm"), ("3_Normalize", f"{package}.Normalize")],
    )
    write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN))
    norm = torch.nn.ModuleDict({"norm": draw(torch.nn.LayerNorm(HIDDEN), seed=3)})
    with torch.no_grad():
        generator = torch.Generator().manual_seed(3)
        norm["norm"].weight.copy_(1 + 0.3 * torch.randn(HIDDEN, generator=generator))
        norm["norm"].bias.copy_(0.3 * torch.randn(HIDDEN, generator=generator))
    write_json(folder / "2_LayerNorm" / "config.json", {"dimension": HIDDEN})
    write_weights(folder / "2_LayerNorm", norm)
    family.keep(
        name,
        dense_records(folder, FEW_TEXTS),
        task="embed",
        expect="served",
        what="mean pooling, 2_LayerNorm, Normalize",
        holds=holds,
        tolerance=VECTOR_TOLERANCE,
    )


def make_prompts(family, holds):
    """Prompts for queries and documents, counted in the pooling or left out of it."""
    for name, include, default in [
        ("bert-prompts", True, None),
        ("bert-prompts-default", True, "document"),
        ("bert-prompts-excluded", False, None),
    ]:
        folder = family.folder(name)
        write_modules(folder, [TRANSFORMER, POOLING, ("2_Normalize", "sentence_transformers.models.Normalize")])
        write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN, include))
        write_json(
            folder / "config_sentence_transformers.json",
            {"prompts": PROMPTS, "default_prompt_name": default, "similarity_fn_name": "cosine"},
        )
        family.keep(
            name,
            dense_records(folder, FEW_TEXTS, kinds=(None, "query", "document")),
            task="embed",
            expect="served",
            what=f"prompts for query and document, default {default}, include_prompt {str(include).lower()}",
            holds=f"{holds}; ids are those of prompt + text",
            tolerance=VECTOR_TOLERANCE,
        )


def make_odd(family):
    """The newer form of the files, a model whose vector may be cut, and one that must be refused."""
    name = "bert-matryoshka"
    folder = family.folder(name)
    config_path = folder / "config.json"
    text = config_path.read_text(encoding="utf-8")
    config_path.write_text(text.replace("{\n", '{\n  "matryoshka_dimensions": [4, 8, 16],\n', 1), encoding="utf-8")
    base = "sentence_transformers.base.modules"
    write_modules(
        folder,
        [
            ("", f"{base}.transformer.Transformer"),
            ("1_Pooling", "sentence_transformers.sentence_transformer.modules.pooling.Pooling"),
            ("2_Normalize", f"{base}.normalize.Normalize"),
        ],
    )
    newer = {"embedding_dimension": HIDDEN, "pooling_mode": "cls", "include_prompt": True}
    write_json(folder / "1_Pooling" / "config.json", newer)
    records = dense_records(folder, FEW_TEXTS)
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"attn_implementation": "eager"})
    for record in records:
        for width in (4, 8):
            cut = model.encode(record["text"], truncate_dim=width, normalize_embeddings=True, show_progress_bar=False)
            record[f"vector{width}"] = to_base64(cut)
    family.keep(
        name,
        records,
        task="embed",
        expect="served",
        what="cls pooling in the newer form of modules.json and 1_Pooling; config.json names matryoshka_dimensions, "
        "and catalog.json beside it says isMatryoshka",
        holds="embed: vector, and vector4 and vector8 cut and normalised again (truncate_dim)",
        tolerance=VECTOR_TOLERANCE,
    )

    name = "bert-mystery"
    folder = family.folder(name)
    write_modules(
        folder,
        [
            TRANSFORMER,
            POOLING,
            ("2_Normalize", "sentence_transformers.models.Normalize"),
            ("3_Mystery", "mystery_package.models.Mystery"),
        ],
    )
    write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN))
    write_json(folder / "3_Mystery" / "config.json", {"strength": 3})
    family.keep(name, None, task="embed", expect="refused at start, naming Mystery", what="a module that nobody knows")
