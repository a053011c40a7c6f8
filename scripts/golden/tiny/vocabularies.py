"""Owns the tiny tokenizers: WordPiece, byte-level BPE and Unigram, trained on the sentences of the corpus."""

import string
from dataclasses import dataclass

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from .corpus import TRAINING_SENTENCES

# What many tokenizer files on the hub state where nothing is known.
NO_LIMIT = int(1e30)


@dataclass(frozen=True)
class TinyTokenizer:
    """A tokenizer and what `tokenizer_config.json` says of it."""

    tokenizer: Tokenizer
    config: dict


# How Qwen2 cuts text before the byte pairs.
QWEN_PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def wordpiece(max_tokens=NO_LIMIT):
    """A BERT tokenizer; `[unused0]` and `[unused1]` are entries of the vocabulary but no special tokens."""
    # The trainer of WordPiece numbers the "##" pieces in the order of a hash table, so that ties fall differently from
    # run to run. The one of byte pairs does not: its pieces are taken, each in the place in a word where it was used.
    trainee = Tokenizer(models.BPE())
    trainee.normalizer = normalizers.BertNormalizer(lowercase=True)
    trainee.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainee.train_from_iterator(TRAINING_SENTENCES, trainers.BpeTrainer(vocab_size=260, show_progress=False))
    pieces = set(string.printable.lower()) - set(string.whitespace)
    pieces |= {f"##{c}" for c in string.ascii_lowercase + string.digits}
    for sentence in TRAINING_SENTENCES:
        encoding = trainee.encode(sentence)
        for i, token in enumerate(encoding.tokens):
            follows = i > 0 and encoding.word_ids[i] == encoding.word_ids[i - 1]
            pieces.add(f"##{token}" if follows else token)
    learned = sorted(pieces, key=lambda token: (len(token), token))
    tokens = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *learned]
    tokenizer = Tokenizer(
        models.WordPiece({t: i for i, t in enumerate(tokens)}, unk_token="[UNK]", max_input_chars_per_word=100)
    )
    tokenizer.normalizer = trainee.normalizer
    tokenizer.pre_tokenizer = trainee.pre_tokenizer
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(t, tokenizer.token_to_id(t)) for t in ("[CLS]", "[SEP]")],
    )
    return TinyTokenizer(
        tokenizer,
        {
            "tokenizer_class": "BertTokenizer",
            "do_lower_case": True,
            "strip_accents": None,
            "tokenize_chinese_chars": True,
            "model_max_length": max_tokens,
            "pad_token": "[PAD]",
            "unk_token": "[UNK]",
            "cls_token": "[CLS]",
            "sep_token": "[SEP]",
            "mask_token": "[MASK]",
        },
    )


def unigram(max_tokens=NO_LIMIT):
    """An XLM-R tokenizer: `<s>` 0, `<pad>` 1, `</s>` 2, `<unk>` 3, `<mask>` last; pairs are joined by two `</s>`."""
    trainee = Tokenizer(models.Unigram())
    trainee.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    trainee.pre_tokenizer = pre_tokenizers.Metaspace()
    alphabet = sorted(set(string.printable) - set(string.whitespace))
    trainer = trainers.UnigramTrainer(
        vocab_size=300, initial_alphabet=alphabet, special_tokens=[], unk_token="<unk>", show_progress=False
    )
    trainee.train_from_iterator(TRAINING_SENTENCES, trainer)
    # Training sums in the order of a hash table: the last digits of a score, and so the choice between pieces of equal
    # use, change from run to run. The pieces are what it learned from; the scores are set again, by rank in a fixed order.
    learned = sorted((t for t in trainee.get_vocab() if t != "<unk>"), key=lambda token: (-len(token), token))
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(token, -4.0 - 2.5 / len(token) - 0.004 * i) for i, token in enumerate(learned)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = trainee.normalizer
    tokenizer.pre_tokenizer = trainee.pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(
        ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, special=True, normalized=False)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return TinyTokenizer(
        tokenizer,
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": max_tokens,
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "sep_token": "</s>",
            "cls_token": "<s>",
            "pad_token": "<pad>",
            "mask_token": "<mask>",
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )


def byte_level(closing, max_tokens=NO_LIMIT):
    """A Qwen tokenizer that pads on the left; with `closing` its template ends a text with `<|endoftext|>`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(QWEN_PATTERN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    trainer = trainers.BpeTrainer(
        vocab_size=480, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(TRAINING_SENTENCES, trainer)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken(t, normalized=False, special=False) for t in ("<think>", "</think>")])
    end = tokenizer.token_to_id("<|endoftext|>")
    bytes_step = processors.ByteLevel(trim_offsets=False, use_regex=False)
    template = processors.TemplateProcessing(
        single="$A <|endoftext|>", pair="$A $B:1 <|endoftext|>:1", special_tokens=[("<|endoftext|>", end)]
    )
    tokenizer.post_processor = processors.Sequence([bytes_step, template]) if closing else bytes_step
    return TinyTokenizer(
        tokenizer,
        {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": max_tokens,
            "pad_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>" if closing else "<|im_end|>",
            "padding_side": "left",
            "model_input_names": ["input_ids", "attention_mask"],
        },
    )
