"""Owns the decoders that embed: the last token's row, padding on the left, a closing token from the template."""

from transformers import Qwen2Config, Qwen2Model

from . import graphs
from .corpus import FEW_TEXTS, TEXTS
from .dense import ROWS, VECTOR_TOLERANCE, dense_records, rows_for_check
from .folders import pooling_config, write_model, write_modules
from .records import write_json
from .vocabularies import byte_level
from .weights import HIDDEN, create

MAX_TOKENS = 96
DECODER_INPUTS = ["input_ids", "attention_mask"]
PROMPTS = {
    "query": "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
    "document": "",
}


def qwen_config(tiny, **more):
    end = tiny.tokenizer.token_to_id("<|endoftext|>")
    return Qwen2Config(
        vocab_size=tiny.tokenizer.get_vocab_size(),
        hidden_size=HIDDEN,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        intermediate_size=32,
        max_position_embeddings=512,
        use_sliding_window=False,
        use_cache=False,
        pad_token_id=end,
        eos_token_id=end,
        bos_token_id=None,
        **more,
    )


def decoder_hidden_state(model, feeds):
    return model(**feeds, use_cache=False).last_hidden_state


def make(place):
    tiny = byte_level(closing=True)
    model = create(Qwen2Model, qwen_config(tiny), seed=60)
    pad_id = model.config.pad_token_id
    for name, inputs in [
        ("decoder-dense", DECODER_INPUTS),
        ("decoder-dense-positions", [*DECODER_INPUTS, "position_ids"]),
    ]:
        folder = place.folder(name)
        write_model(folder, model, tiny)
        write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_TOKENS, "do_lower_case": False})
        write_modules(
            folder,
            [
                ("", "sentence_transformers.models.Transformer"),
                ("1_Pooling", "sentence_transformers.models.Pooling"),
                ("2_Normalize", "sentence_transformers.models.Normalize"),
            ],
        )
        write_json(folder / "1_Pooling" / "config.json", pooling_config(["lasttoken"], HIDDEN))
        config = {"prompts": PROMPTS, "default_prompt_name": None, "similarity_fn_name": "cosine"}
        write_json(folder / "config_sentence_transformers.json", config)
        path = folder / "onnx" / "model.onnx"
        graphs.export(model, decoder_hidden_state, inputs, {"last_hidden_state": ROWS}, path, pad_id=pad_id)
        first = name == "decoder-dense"
        records = dense_records(folder, TEXTS if first else FEW_TEXTS, (None, "query") if first else (None,))
        rows = rows_for_check(records)
        outputs = ["last_hidden_state"]
        check = {
            side: graphs.compare(
                path,
                model,
                decoder_hidden_state,
                rows,
                pad_id,
                inputs,
                outputs,
                left=side == "left",
                position_rule="mask",
            )
            for side in ("left", "right")
        }
        place.keep(
            name,
            records,
            task="embed",
            expect="served",
            what="Qwen2, last-token pooling, Normalize; the tokenizer pads on the left and its template ends every text with "
            "<|endoftext|>, which is kept when a text is cut"
            + ("; the graph asks for position_ids" if not first else ""),
            holds="embed: vector and ids of prompt + text",
            positions="cumulative sum of attention_mask, minus 1; rows are the same with padding on either side",
            graphs={"onnx/model.onnx": graphs.describe(path)},
            onnxMaxAbsDiff={"onnx/model.onnx": check},
            tolerance=VECTOR_TOLERANCE,
        )
