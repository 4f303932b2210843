#!/usr/bin/env python3
"""Trains small tokenizers of every kind that Briar reads and writes what Hugging Face's `tokenizers`
makes of some texts: src/tokenizer/testdata/KIND.json, each {"tokenizer", "cases": [[text, ids], ...],
"decoded"?: ...}, compared by src/tokenizer/fixtures_test.cc.

Usage: scripts/make_tokenizer_fixtures.py [FOLDER] [--cases N]      (needs `pip install tokenizers`)

Ids are those of encode(text, add_special_tokens=False), in which spellings of added tokens count.
"""

import json
import pathlib
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*"
            r"|\s*[\r\n]+|\s+(?!\S)|\s+")
CORPUS = """The ferry from the mainland left at ten past six, and the passengers had already sorted themselves into groups.
It's what we'd do; you'll see, they've said it, I'm sure, don't. In 1987 there were 212 people, 3.14159 of 1,234,567.
def main(args):\n\treturn {"a": [x**2 for x in args if x != 3]}  # comment\n\n\n    pass\n
Der Zug fährt über die Brücke; où est l'hôtel près de la fenêtre? Привет, как дела? Расскажи о Москве.
你好，世界！今天是2024年7月5日。日本語のテキストとカタカナ、漢字。한국어 문장도 있어요. नमस्ते दुनिया. مرحبا بالعالم שלום עולם
the the the and and and of of to to in in is is that that a a a    spaces   here  ====== ------ !!!! ... ???\r\n\r\n
"""
TRICKY = list("aabzAZ 0  19\t\n\r\n//.,'''sStTrReEvVmMlLdD\"(<|>_éÉßǅʰªя漢字あ가½Ⅷ²٣🙂🇩�▁") + [
    "ſ", "\u0301", "\u0300", "\u0323", "\u0903", "\u0085", "\u00a0", "\u2028", "\u3000", "\u200b", "\u200d", "\ufeff", "e\u0301", "\u212b",
    "\u1100\u1161\u11a8", "'s", "'LL", "'ſ", " the", " and", "  ", "\n\n", "1987", "<|end|>", "<tool_call>", "</s>", "<s>", "word", "漢字"]


def texts(seed, count):
    rng = random.Random(seed)
    lines = ["", " ", "Hello, world!", "  leading and trailing  ", " 7  42   1000 3.14159 0xFF", "e\u0301 \u212b \u1112\u1161\u11ab",
             "it's 'S 'LL I’m we'D", "a<|end|> b <|end|><|end|>  c", "<|END|> <| end|>", "<s>a</s> <tool_call>{}", "\u0004\u0013x\u0004"]
    while len(lines) < count:
        lines.append("".join(rng.choice(TRICKY) for _ in range(rng.randrange(1, 40))))
    return lines


def byte_level(pre, missing="", vocab_size=420, normalizer=None, **model):
    tokenizer = Tokenizer(models.BPE(**model))
    tokenizer.pre_tokenizer = pre
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = [c for c in pre_tokenizers.ByteLevel.alphabet() if c not in missing]
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, initial_alphabet=alphabet, special_tokens=["<|end|>"])
    tokenizer.train_from_iterator(CORPUS.splitlines(True), trainer)
    return tokenizer


def plain_byte_level():
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def isolated(pattern):
    return pre_tokenizers.Split(Regex(pattern), behavior="isolated")


def gpt2():
    return byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False))


def llama3():
    tokenizer = byte_level(pre_tokenizers.Sequence([isolated(LLAMA3), plain_byte_level()]), ignore_merges=True)
    tokenizer.add_special_tokens(["<|begin|>"])
    begin = tokenizer.token_to_id("<|begin|>")
    tokenizer.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), processors.TemplateProcessing(
        single="<|begin|> $A", pair="<|begin|> $A <|begin|> $B", special_tokens=[("<|begin|>", begin)])])
    return tokenizer


def qwen2():
    tokenizer = byte_level(pre_tokenizers.Sequence([isolated(QWEN2), plain_byte_level()]), normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken("<tool_call>", normalized=False, special=False)])
    return tokenizer


def smollm():
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    return byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(
        add_prefix_space=False)]), missing=alphabet[-20:])


def digits():
    return byte_level(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.ByteLevel(
        add_prefix_space=False)]))


def deepseek():
    return byte_level(pre_tokenizers.Sequence([isolated(r"\p{N}{1,3}"), isolated("[一-龥\u3040-ゟ゠-ヿ]+"), isolated(DEEPSEEK), plain_byte_level()]))


def added_flags():
    tokenizer = byte_level(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer=normalizers.NFC())
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=False), AddedToken("\u00e9\u0301x", normalized=True),
                          AddedToken("  ", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<s>", lstrip=True, normalized=False), AddedToken("</s>", rstrip=True, normalized=False),
                                  AddedToken("<tool_call>", lstrip=True, rstrip=True, normalized=False)])
    return tokenizer


def sentencepiece(normalizer, pre, byte_fallback=True):
    """Trained on marked words, then given byte tokens in front, as SentencePiece does."""
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trained.train_from_iterator(CORPUS.splitlines(), trainers.BpeTrainer(vocab_size=330, show_progress=False, limit_alphabet=150))
    body = json.loads(trained.to_str())["model"]
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256 if byte_fallback else 0)]
    tokens += [token for token, _ in sorted(body["vocab"].items(), key=lambda item: item[1])]
    vocab = {token: i for i, token in enumerate(tokens)}
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in body["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges, unk_token="<unk>", fuse_unk=True, byte_fallback=byte_fallback))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    tokenizer.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in ("<unk>", "<s>", "</s>")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return tokenizer


def llama2():
    return sentencepiece(normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]), None)


def metaspace_first():
    return sentencepiece(None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False))


def metaspace_split():
    return sentencepiece(None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True), byte_fallback=False)


KINDS = [gpt2, llama3, qwen2, smollm, digits, deepseek, added_flags, llama2, metaspace_first, metaspace_split]


def main():
    arguments = sys.argv[1:]
    count = 60
    if "--cases" in arguments:
        at = arguments.index("--cases")
        count = int(arguments[at + 1])
        del arguments[at:at + 2]
    folder = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent / "src/tokenizer/testdata")
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        tokenizer = kind()
        cases = []
        for text in texts(kind.__name__, count):
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            cases.append([text, ids, tokenizer.decode(ids, skip_special_tokens=False)])
        fixture = {"bos": (tokenizer.encode("", add_special_tokens=True).ids or [None])[0], "tokenizer": json.loads(tokenizer.to_str()), "cases": cases}
        path = folder / f"{kind.__name__}.json"
        path.write_text(json.dumps(fixture, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
