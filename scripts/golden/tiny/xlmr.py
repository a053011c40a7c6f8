"""Owns the XLM-R models: positions start behind the padding id, and the tokenizer is a Unigram."""

from transformers import XLMRobertaConfig, XLMRobertaModel

from . import graphs
from .corpus import TEXTS
from .dense import POOLING, ROWS, TRANSFORMER, VECTOR_TOLERANCE, dense_records, rows_for_check
from .folders import pooling_config, write_model, write_modules
from .records import write_json
from .vocabularies import unigram
from .weights import HIDDEN, create

# Two positions are never used: those up to the padding id.
POSITIONS = 66
USABLE = 64
XLMR_INPUTS = ["input_ids", "attention_mask"]
PROMPTS = {"query": "query: ", "document": "passage: "}


def xlmr_config(tiny, **more):
    return XLMRobertaConfig(
        vocab_size=tiny.tokenizer.get_vocab_size(),
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
        **more,
    )


def make(place):
    tiny = unigram()
    model = create(XLMRobertaModel, xlmr_config(tiny), seed=30)
    for name, inputs in [("xlmr-dense", XLMR_INPUTS), ("xlmr-dense-positions", [*XLMR_INPUTS, "position_ids"])]:
        folder = place.folder(name)
        write_model(folder, model, tiny)
        write_modules(folder, [TRANSFORMER, POOLING, ("2_Normalize", "sentence_transformers.models.Normalize")])
        # The stated limit is the number of positions, which is two more than can be used.
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": USABLE, "do_lower_case": False})
        write_json(folder / "1_Pooling" / "config.json", pooling_config(["mean"], HIDDEN))
        config = {"prompts": PROMPTS, "default_prompt_name": None, "similarity_fn_name": "cosine"}
        write_json(folder / "config_sentence_transformers.json", config)
        path = folder / "onnx" / "model.onnx"
        graphs.export(model, graphs.last_hidden_state, inputs, {"last_hidden_state": ROWS}, path, pad_id=1)
        kinds = (None, "query", "document") if name == "xlmr-dense" else (None,)
        records = dense_records(folder, TEXTS, kinds)
        check = graphs.compare(
            path,
            model,
            graphs.last_hidden_state,
            rows_for_check(records),
            1,
            inputs,
            ["last_hidden_state"],
            position_rule="padding",
        )
        # Without the limit of sentence-transformers the positions alone must give the usable length.
        (folder / "sentence_bert_config.json").unlink()
        place.keep(
            name,
            records,
            task="embed",
            expect="served",
            what=f"XLM-R, mean pooling, Normalize, prompts; {POSITIONS} positions of which {USABLE} are usable, which no file "
            "states" + ("; the graph asks for position_ids" if "position_ids" in inputs else ""),
            holds="embed: vector and ids of prompt + text",
            positions="cumulative sum of (id != 1), times (id != 1), plus 1; a literal <pad> in a text has position 1",
            graphs={"onnx/model.onnx": graphs.describe(path)},
            onnxMaxAbsDiff={"onnx/model.onnx": check},
            tolerance=VECTOR_TOLERANCE,
        )
