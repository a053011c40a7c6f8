"""Owns the words that the tiny tokenizers learn from and the texts that every golden file holds."""

TRAINING_SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "A wing in a slipstream lifts more than a wing in still air.",
    "Heat moves through the wall of a fast aircraft.",
    "The pressure on a flat plate falls behind the shock wave.",
    "What similarity laws must a heated model obey?",
    "A boundary layer grows along the surface of the plate.",
    "Water freezes at zero degrees and boils at one hundred.",
    "The library opens at nine in the morning and closes at six.",
    "Which search engine finds the right document for a short question?",
    "Bread needs flour, water, salt and time.",
    "The children played in the garden until it was dark.",
    "An engine turns the energy of fuel into motion.",
    "She wrote a long letter to her friend in another country.",
    "Trains between the two cities leave every thirty minutes.",
    "The museum shows paintings of the nineteenth century.",
    "Rain is likely in the north, and the south stays dry.",
    "Good tests say a rule that a reader can check.",
    "He measured the speed of the wind with a small instrument.",
    "Vectors of similar texts point in similar directions.",
    "Judge whether the document meets the requirements based on the query and the instruct provided.",
    'Note that the answer can only be "yes" or "no".',
    "Given a web search query, retrieve relevant passages that answer the query",
    "query: how fast is the wind? passage: the wind is fast.",
    "Crème brûlée à la façon de l'été, une leçon naïve.",
    "Größe, Maß und Übung: schöne Grüße aus München.",
    "東京は日本の首都です。 中文 搜索 你好 世界。",
    "Numbers: 0 1 2 3 4 5 6 7 8 9, 3.14159, 1,000,000.",
    "yes no yes no yes no",
    "no\nno\nno\nno\nno\nyes\nyes\nyes\nyes\nyes",
    "system user assistant Query Document Instruct think",
]

LONG_TEXT = " ".join(TRAINING_SENTENCES[:20])

WORDS = ["wind", "wing", "water", "wall", "wave", "word", "world"]

# What breaks servers, beside plain sentences. The first ones are short and harmless.
TEXTS = [
    "hello world",
    "The quick brown fox jumps over the lazy dog.",
    "a",
    "",
    " ",
    "\t\r\n",
    "  two blanks  before, between  and after  ",
    "Crème brûlée à la façon de l'été",
    "Cre\u0300me bru\u0302le\u0301e, decomposed",
    "Größe und Maß: ÜBUNG, İstanbul, ﬁne Ǆ",
    "東京は日本の首都です。",
    "中文搜索 and English 你好",
    "rocket 🚀 family 👩‍👩‍👧 flag 🇫🇷",
    "beyond the plane: 𝕬𝖇𝖈 𠀀𠀁",
    "[SEP]",
    "a literal [SEP] and [CLS] and [MASK] inside",
    "<s> literal </s> and <mask> and <pad>",
    "<|endoftext|> literal <|im_end|> inside",
    "[Q] what is wind [unused0] and [D] too",
    "control \u0001 chars \u0007 zero\u200bwidth \ufeff soft\u00adhyphen \u0000 end",
    "!?... (a-b) \"c\" 'd' {e} #f $g %h &i *j +k ,l /m :n ;o <p> =q @r [s] \\t ^u _v `w |x ~y",
    "x" * 300,
    "شمس وقمر and שלום",
    "line one\r\nline two\n\nline four",
    "3.14159 or 1,000,000 or 2026-01-31",
    LONG_TEXT,
]

# Where one record is large: one of each sort.
FEW_TEXTS = [
    "hello world",
    "The quick brown fox jumps over the lazy dog.",
    "",
    "Crème brûlée à la façon de l'été",
    "東京は日本の首都です。",
    "a literal [SEP] and [CLS] and [MASK] inside",
    "[Q] what is wind [unused0] and [D] too",
    "!?... (a-b) \"c\" 'd' {e}",
    LONG_TEXT,
]

QUERY = "how fast is the wind?"
QUERIES = [QUERY, "", "Crème brûlée [SEP] 東京"]
PASSAGES = [
    "He measured the speed of the wind with a small instrument.",
    "Bread needs flour, water, salt and time.",
    "",
    "a literal [SEP] and [CLS] and [MASK] inside",
    "東京は日本の首都です。 Crème brûlée",
    LONG_TEXT,
]


def texts_around_limit(count_tokens, limit):
    """Texts of exactly one token less than the limit, of the limit, and of one more, special tokens included."""
    found = {}
    for length in range(1, limit + 2):
        text = " ".join(WORDS[i % len(WORDS)] for i in range(length))
        for extra in ("", " a", " a a"):
            found.setdefault(count_tokens(text + extra), text + extra)
    return [found[tokens] for tokens in (limit - 1, limit, limit + 1) if tokens in found]
