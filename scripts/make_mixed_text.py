#!/usr/bin/env python3
"""Writes a seeded mixture of texts as a tokenizer's users send them, for benchmarks.

Usage: scripts/make_mixed_text.py [--bytes 5000000] [--seed 1] --out FILE

Documents of a few kilobytes follow one another: prose in several languages and scripts, code, JSON,
numbers, logs, emoji, odd white space. Words are drawn by Zipf's law from lists of real words and
from made-up ones, so that some are one token and many are not, as in real text; identifiers mix
both.
"""

import argparse
import itertools
import json
import random

ENGLISH = """the of and to in a is that for it as was with be by on not he his but at are this
have from or had an they which one you were her all she there would their we him been has when
who will more no if out so said what up its about into than them can only other new some could
time these two may then do first any my now such like our over man me even most made after also
did many before must through back years where much your way well down should because each just
those people how too little state good very make world still own see men work long get here
between both life being under never day same another know while last might us great old year off
come since against go came right used take three states himself few house use during without
again place american around however home small found thought went say part once general high
upon school every does got united left number course war until always away something fact though
water less public put thing almost hand enough far took head yet government system better set
told nothing night end why called eyes find going look asked later knew point next program city
business give group toward young days let room word side social given present several order
national possible rather second face per among form important often things looked early white
case large big become need four within felt children along saw best church ever least power
development light seemed family interest want members mind country area others done turned
although open service certain kind began problem different door sense help half whole matter
times itself question result company information computation throughput attention transformer
matrix latency scheduler kernel gradient embedding quantization inference speculative decoding
hypothesis nevertheless extraordinarily misunderstanding photosynthesis bureaucratic
archaeological metamorphosis serendipity juxtaposition idiosyncratic""".split()

LANGUAGES = {
    "german": """der die und in den von zu das mit sich des auf für ist im dem nicht ein eine
        als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem
        über einen so zum war haben nur oder aber vor zur bis mehr durch man sein wurde sei
        Geschwindigkeit Bundesregierung Donaudampfschifffahrt größer möglich während Straße
        Überprüfung Verständnis""".split(),
    "french": """le de un être et à il avoir ne je son que se qui ce dans en du elle au pour pas
        vous par sur faire plus dire me on mon lui nous comme mais pouvoir avec tout y aller
        voir bien où sans tu ou leur homme si l'été d'abord aujourd'hui développement français
        évidemment""".split(),
    "spanish": """de la que el en y a los se del las un por con no una su para es al lo como más
        o pero sus le ha me si sin sobre este ya entre cuando todo esta ser son dos también fue
        había era muy años hasta desde está comunicación niño corazón rápidamente""".split(),
    "hungarian": """a az és hogy nem is egy ez meg de csak volt már még mint vagy ha el azt fel
        ki be lehet kell minden amely után szerint között gyorsítás spekulatív feldolgozás
        teljesítmény megvalósítás""".split(),
    "russian": """и в не на я быть он с что а по это она этот к но они мы весь который из у то
        за свой от так для ты же все тот мочь вы человек такой его сказать один как уже год
        время самый другой производительность вычисление распределённый необходимость""".split(),
    "greek": """και το να του η της με που την από για είναι στο οι τα ότι δεν στην θα τον μια
        ένα υπολογισμός ταχύτητα αρχιτεκτονική""".split(),
    "arabic": """في من على أن إلى التي عن هذا ما كان مع هذه لا بين كل ذلك قد بعد الذي لم غير حيث
        الحاسوب السرعة المعالجة""".split(),
    "hindi": """के है में की से को और का यह पर ने कि एक हैं भी नहीं इस तो लिए कर था जो ही गया
        साथ प्रदर्शन संगणना भाषा""".split(),
}
CJK = {
    "chinese": (
        "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现当没动面起看定天分还"
        "进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或"
        "新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太"
        "量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交"
        "规万取拉格望觉术领共确传师观清今切院让识候带导争运"),
    "japanese": (
        "のにはをたがでてとしれさあるいもするからなことよりらやまそうけどえきくつちりめみね日本語人年大学生時間私達今何見行来食事言葉問題計算速度実装文字処理システムモデ"
        "ルサーバー"),
    "korean": "이그저것수하다있다없다되다나우리사람년일때말한국어계산속도서버모델처리문장번역언어시간문제생각",
}
EMOJI = ["🙂", "😂", "🔥", "👍🏽", "👨‍👩‍👧", "🇭🇺", "🚀", "❤️", "✅", "🤔", "🧪", "☕"]
SYLLABLES = """ba be co da de fi ga hy in jo ka le mi no op pra qui re sta tri un ver wex xi
    yo zen tion ing able ment pre con sub ject late""".split()


class Writer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.weights = {}  # by the number of words
        self.made_up = ["".join(self.random.choices(SYLLABLES, k=self.random.randint(2, 4)))
                        for _ in range(20000)]

    def zipf(self, words):
        weights = self.weights.get(len(words))
        if weights is None:
            weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(words))))
            self.weights[len(words)] = weights
        return self.random.choices(words, cum_weights=weights)[0]

    def word(self, words, rare):
        return self.random.choice(self.made_up) if self.random.random() < rare else self.zipf(words)

    def sentence(self, words, rare=0.04):
        r = self.random
        parts = [self.word(words, rare) for _ in range(r.randint(4, 22))]
        parts[0] = parts[0].capitalize()
        for i in range(len(parts) - 1):
            p = r.random()
            if p < 0.07:
                parts[i] += ","
            elif p < 0.08:
                parts[i] += "'s"
            elif p < 0.09:
                parts[i] += " (" + r.choice(words) + ")"
        return " ".join(parts) + r.choice(["."] * 8 + ["!", "?", "...", ";"])

    def prose(self, words=ENGLISH, rare=0.04):
        r = self.random
        return "\n\n".join(" ".join(self.sentence(words, rare) for _ in range(r.randint(2, 6)))
                           for _ in range(r.randint(2, 6)))

    def foreign(self):
        return self.prose(LANGUAGES[self.random.choice(list(LANGUAGES))], 0.01)

    def cjk(self):
        r = self.random
        name = r.choice(list(CJK))

        def run():
            return "".join(self.zipf(CJK[name]) if r.random() < 0.3 else r.choice(CJK[name])
                           for _ in range(r.randint(2, 14)))

        gap = " " if name == "korean" else "，"
        return "".join(run() + r.choice([gap, gap, gap, "。", "、", "（" + run() + "）"])
                       for _ in range(60))

    def identifier(self):
        r = self.random
        parts = [self.word(ENGLISH, 0.2) for _ in range(r.randint(1, 3))]
        style = r.random()
        if style < 0.5:
            return "_".join(parts)
        if style < 0.8:
            return parts[0] + "".join(p.capitalize() for p in parts[1:])
        return "".join(p.capitalize() for p in parts)

    def code(self):
        r, ident, lines = self.random, self.identifier, []
        names = [ident() for _ in range(12)]
        for _ in range(r.randint(3, 8)):
            arguments = ", ".join(r.choices(names, k=r.randint(0, 4)))
            lines.append(r.choice([
                f"def {r.choice(names)}({arguments}):",
                f"static inline int {r.choice(names)}(const {ident()}& {r.choice(names)}) {{"]))
            for _ in range(r.randint(2, 9)):
                a, b, c = r.choices(names, k=3)
                indent = r.choice(["    ", "        ", "            ", "\t", "\t\t"])
                lines.append(indent + r.choice([
                    f"{a} = {b}[{r.randint(0, 99)}] + {c}.{ident()}();",
                    f"if ({a} != nullptr && {b} >= 0x{r.getrandbits(32):08x}) {{",
                    f"for {a} in range({r.randint(1, 4096)}):  # {self.sentence(ENGLISH)}",
                    f"return std::make_unique<{ident()}>({a}, \"{ident()}\\n\");",
                    f"// {self.sentence(ENGLISH)}", "}", ""]))
            lines.append(r.choice(["}\n", "\n"]))
        return "\n".join(lines)

    def json(self):
        r = self.random

        def value(depth):
            kind = r.random()
            if depth < 3 and kind < 0.3:
                return {self.identifier(): value(depth + 1) for _ in range(r.randint(1, 6))}
            if depth < 3 and kind < 0.45:
                return [value(depth + 1) for _ in range(r.randint(1, 5))]
            return r.choice([r.randint(0, 10**6), r.random(), True, None, self.sentence(ENGLISH),
                             f"{r.getrandbits(64):016x}"])

        return json.dumps({self.identifier(): value(0) for _ in range(8)},
                          ensure_ascii=r.random() < 0.3, indent=r.choice([None, 2, 4]))

    def numbers(self):
        r = self.random

        def number():
            return r.choice([
                f"{r.random() * 1000:.4f}", str(r.randint(0, 10**9)),
                f"20{r.randint(10, 30)}-{r.randint(1, 12):02d}-{r.randint(1, 28):02d}"])
        return "\n".join("\t".join(number() for _ in range(r.randint(2, 8))) for _ in range(20))

    def log(self):
        r, ident = self.random, self.identifier

        def line():
            time = f"{r.randint(0, 23):02d}:{r.randint(0, 59):02d}:{r.random() * 60:06.3f}"
            place = f"/usr/lib/{ident()}/{ident()}.so+0x{r.getrandbits(20):x}"
            level = r.choice(["INFO", "WARN", "ERROR"])
            return f"[{time}] {level} {ident()}: {self.sentence(ENGLISH)} ({place})"
        return "\n".join(line() for _ in range(15))

    def chat(self):
        r = self.random

        def line():
            emoji = "".join(r.choices(EMOJI, k=r.randint(0, 3)))
            return self.sentence(ENGLISH) + " " + emoji + " " * r.randint(0, 5)
        return "\r\n".join(line() for _ in range(12)) + "\n" * r.randint(1, 5)

    def document(self):
        kinds = {self.prose: 30, self.foreign: 20, self.cjk: 10, self.code: 18, self.json: 10,
                 self.numbers: 4, self.log: 4, self.chat: 4}
        return self.random.choices(list(kinds), list(kinds.values()))[0]()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bytes", type=int, default=5_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    writer = Writer(args.seed)
    size = 0
    with open(args.out, "wb") as out:
        while size < args.bytes:
            document = (writer.document() + "\n\n").encode()
            if size + len(document) > args.bytes:
                document = document[:args.bytes - size].decode(errors="ignore").encode()
                out.write(document)
                break
            size += out.write(document)


if __name__ == "__main__":
    main()
