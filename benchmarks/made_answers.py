"""Made answers to made questions, from a seed: right, wrong, and everything near a right answer that models write.

The one idea: each rule has a maker of golds (with options or a task where it needs them) and a list of ways to write
an answer; a third of the answers are bent afterwards, by characters lost, doubled, swapped, widened or set in prose.
No row of any benchmark is used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from string import ascii_uppercase

Rng = random.Random
_NAMES = [
    "red", "light blue", "a cat", "left of the cup", "none of these", "Paris", "7", "3.5", "12 cm", "左侧", "behind",
    "the b line", "C major", "Fe-Mn (III)", "$\\sqrt{2}$", "x = 4", "Généralités", "右肺", "on top",
]  # fmt: skip
_WORDS = [
    "Yes", "No", "是", "否", "没有", "X-Ray", "x ray", "Lung (left)", "左肺", "Brain Edema", "Go-Jek", "2", "two",
    "Germany", "T1", "MRI", "正常", "Transverse Plane", "肝脏、肾", "Liver, heart",
]  # fmt: skip
_LETTER_FORMS = [
    "{L}", "({L})", "{L}.", "{L})", "{L}. {t}", "{l}", "{l}.", "**{L}**", "\\boxed{{{L}}}", "[{L}]", "{L}: {t}",
    "The answer is {L}", "The answer is ({L}).", "The answer is **{L}**", "answer: {l}", "Answer = ({L})",
    "option {L}", "{t}", "It is {t}.", "I think it is {L} because of A", "Not {O}, so {L}.", "{O} or {L}",
    "{L}\n{O} is wrong", "first {O}, then ({L})", "答案：{L}", "选{L}。", "（{L}）", "Ａ", "Choice {L} it is",
    "The correct option is {L} , I am sure of that", "a {t}", "Neither", "Cannot determine the answer", "Z",
    "the answer is ({N})", "answer is {N}", "answer is **({N})**", "({N})", "{N}", "answer is {N}{N}",
    '{{"answer": "{L}"}}', '```json\n{{"answer": "{L}. {t}",}}\n```', "{L}{O}", "{L}1", "Bad {t} {L}", "정답은 {L}",
    "la réponse est {L}", "Die Antwort ist {L}", "答えは{L}です", "The b in it is {L}",
]  # fmt: skip
_COUNT_FORMS = [
    "{n}", "{{{n}}}", "There are {n}.", "{w}", "{w} dogs", "I count {m}, no {n}", "{n}.0", "{n}%", "{n}个", "有{n}个",
    "no{n}", "{n}th", "-{n}", "1{n}", "{n},000", "about {n} or {m}", "{n}\n", "**{n}**", "Yes", "zero", "none",
    "{n} rows", "twenty{w}", "{w}ty", "４", "٣", "{n}/{m}", "x{n}", "{n}_{m}", "answer: {w}",
]  # fmt: skip
_NUMBER_FORMS = [
    "{v}", "{v}%", "{near}", "{near}%", "{far}", "{v}.", " {v}", "{v} ", "{v}\n", "${v}", "{v} million", "+{v}",
    "{v}e0", "{hundredth}", "{group}", "{far} to {v}", "nan", "inf", "1_0", "{v}%%", "-{v}", "It is {v}", "{v:.0f}",
    "{v:e}", "infinity", "0", "0%", "0.0", ".5", "5.", "1e999",
]  # fmt: skip
_TEXT_FORMS = [
    "{g}", "{gl}", "{gu}", "{g}.", " {g} ", "the {g}", "{g} (seen)", "“{g}”", "{g}。", "({g})", "（{g}）", "{o}",
    "{g}, {o}", "{half}", "*{g}*", "{g}\n", "{g}!", "it says\n{g}", "{spaced}", "{wide}", "《{g}》", "{g}?{o}",
]  # fmt: skip
_GRID_FORMS = [
    "{{{r}}}{{{c}}}", "{{{r}}} {{{c}}}", "({r}, {c})", "({r},{c})", "rows={{{r}}} columns={{{c}}}", "{r},{c}",
    "rows={{{r}}}, columns={{{c}}}", "Rows={{{r}}} Columns={{{c}}}", "{r} x {c}", "({c}, {r})", "[{r},{c}]",
    "rows: {r}, columns: {c}", "{{{r}}},{{{c}}}", "It has ({r} , {c}) cells", "{{{r}}}{{{c}}}{{1}}",
]  # fmt: skip
_EXACT = [
    "13", "\\frac{1}{2}", "0.5", "3\\sqrt{2}", "2\\pi", "1/3", "(1,2)", "[0,\\infty)", "-4", "1000", "2.25", "45",
    "\\sqrt{13}", "7\\frac{1}{2}", "2^3", "\\frac{3\\pi}{4}", "10\\sqrt{3}", "5:3", "1+\\sqrt{5}",
    "\\frac{\\sqrt{3}}{2}",
]  # fmt: skip
_SAME = {"\\frac{1}{2}": ["0.5", "1/2", ".5", "0.50"], "3\\sqrt{2}": ["4.243", "3 \\sqrt 2"],
         "2\\pi": ["6.28", "2 \\pi"],
         "\\sqrt{13}": ["3.606", "\\sqrt13"], "45": ["45^\\circ", "45.0"], "1/3": ["0.333", "\\frac{1}{3}"],
         "(1,2)": ["(1, 2)", "(1.0,2)", "[1,2]"], "1000": ["1,000", "10^3"], "2^3": ["8", "2^{3}"],
         "\\frac{\\sqrt{3}}{2}": ["0.866", "\\dfrac{\\sqrt{3}}{2}"]}  # fmt: skip
_MATH_FORMS = [
    "{a}", "${a}$", "\\boxed{{{a}}}", "So x = {a}", "The answer is {a}.", "the final answer is {a}\nDone.",
    "$$\\boxed{{{a}}}$$ is right", "\\boxed{{1}} then \\boxed{{{a}}}", "{a} km", "{a}\\text{{ cm}}",
    "x \\approx {a}", "The correct answer is: {a}", "{a}^\\circ", "\\boxed{{x={a}}}", "it is {a}", "{a}\\%",
    "{{{a}}}", ":{a}",
]  # fmt: skip
_NUMERALS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
TASKS = (
    "touching circles", "line plot intersections", "subway connections", "olympic counting - circles",
    "olympic counting - pentagons", "nested squares", "circled letter", "counting grid - blank grids",
    "counting grid - word grids",
)  # fmt: skip
_OCR_TYPES = ("Doc-oriented VQA", "Handwritten Mathematical Expression Recognition", "Regular Text Recognition")


@dataclass(frozen=True)
class Made:
    """One answer to one question; `choices` and `group` where the rule looks at them."""

    gold: str
    answer: str
    choices: tuple[str, ...] | None = None
    group: str | None = None


def made(rule: str, seed: int) -> Iterator[Made]:
    """Answers for a rule of `MAKERS`, without an end; the same for the same seed."""
    rng = Rng(f"{rule}/{seed}")
    while True:
        one = MAKERS[rule](rng)
        yield one if rng.random() < 0.67 else Made(one.gold, bent(one.answer, rng), one.choices, one.group)


def bent(text: str, rng: Rng) -> str:
    """The text with one to three small changes."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(text) + 1)
        head, tail = text[:at], text[at:]
        mark, sign = rng.choice(".,;:!()[]{}$%*\n-\\'\"，。（）"), rng.choice("abcdABCDxn0123456789")
        text = rng.choice(
            [head + tail[1:], head + tail[:1] + tail, head + " " + tail, head + mark + tail, head + sign + tail,
             text.upper(), text.lower(), text[::-1] if len(text) < 4 else head, head + tail[1:2] + tail[:1] + tail[2:],
             text + " It is A common thing.", "I see that " + text, text + "\n" + text,
             "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)]
        )  # fmt: skip
    return text


def _option(rng: Rng, count: int | None = None) -> Made:
    options = tuple(rng.sample(_NAMES, count or rng.randint(2, 5)))
    right = rng.randrange(len(options))
    said = right if rng.random() < 0.6 else rng.randrange(len(options))
    other = rng.randrange(len(options))
    letter = ascii_uppercase[said]
    answer = rng.choice(_LETTER_FORMS).format(
        L=letter, l=letter.lower(), O=ascii_uppercase[other], t=options[said], N=said + 1
    )
    return Made(ascii_uppercase[right], answer, options)


def _count(rng: Rng) -> Made:
    gold, other = rng.randint(0, 22), rng.randint(0, 22)
    said = gold if rng.random() < 0.6 else other
    word = _NUMERALS[said] if said < len(_NUMERALS) else str(said)
    return Made(str(gold), rng.choice(_COUNT_FORMS).format(n=said, m=other, w=word))


def _text(rng: Rng, words: list[str] = _WORDS) -> Made:
    gold, other = rng.choice(words), rng.choice(words)
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in gold)
    answer = rng.choice(_TEXT_FORMS).format(
        g=gold,
        gl=gold.lower(),
        gu=gold.upper(),
        o=other,
        half=gold[: len(gold) // 2 or 1],
        spaced=" ".join(gold),
        wide=wide,
    )
    return Made(gold, answer)


def _chart(rng: Rng) -> Made:
    if rng.random() < 0.3:
        return _text(rng)
    value = rng.choice(
        [0.0, 50.0, 1995.0, 0.57, -3.0, 1234.0, round(rng.uniform(-100, 5000), 2), round(rng.random(), 3)]
    )
    answer = rng.choice(_NUMBER_FORMS).format(
        v=value, near=value * rng.uniform(0.94, 1.06), far=value * 1.4 + 1, hundredth=value / 100, group=f"{value:,.2f}"
    )
    gold = rng.choice([f"{value:g}", f"{value}", f"{value:g}%", f"{value:,.0f}", f"{value * 1.05:g}"])
    return Made(gold, answer)


def _blind(rng: Rng) -> Made:
    task = rng.choice(TASKS)
    if task == "touching circles":
        forms = ["Yes", "No", "yes.", " NO ", "Yes, they do", "{yes}", "是", "not", "n", "True"]
        return Made(rng.choice(["Yes", "No"]), rng.choice(forms), group=task)
    if task == "circled letter":
        forms = ["{g}", "{{{g}}}", "{gu}", "The letter is {g}", "'{g}'", "({o})", "1{g}", "ñ", "字{g}", "{g}{o}", "?"]
        gold, other = rng.choice("abcdehnotxyz"), rng.choice("abcdehnotxyz")
        return Made(gold, rng.choice(forms).format(g=gold, gu=gold.upper(), o=other), group=task)
    if task.startswith("counting grid"):
        rows, columns = rng.randint(3, 12), rng.randint(3, 12)
        said = (rows, columns) if rng.random() < 0.7 else (columns, rows + 1)
        return Made(f"{rows},{columns}", rng.choice(_GRID_FORMS).format(r=said[0], c=said[1]), group=task)
    one = _count(rng)
    return Made(one.gold, one.answer, group=task)


def _mathematics(rng: Rng) -> Made:
    gold = rng.choice(_EXACT)
    if rng.random() < 0.4:
        options = tuple(rng.sample(_EXACT, 5))
        right = rng.randrange(5)
        said = right if rng.random() < 0.6 else rng.randrange(5)
        forms = [*_LETTER_FORMS, *("\\boxed{{{t}}}", "the answer is {t}", "So it is ({L}).", "({L})\n{t}")]
        letter = ascii_uppercase[said]
        answer = rng.choice(forms).format(
            L=letter, l=letter.lower(), O=rng.choice("ABCDE"), t=options[said], N=said + 1
        )
        return Made(ascii_uppercase[right], answer, options)
    said = rng.choice([gold, *_SAME.get(gold, [gold])]) if rng.random() < 0.7 else rng.choice(_EXACT)
    return Made(gold, rng.choice(_MATH_FORMS).format(a=said))


def _ocr(rng: Rng) -> Made:
    kind = rng.choice(_OCR_TYPES)
    one = _text(rng, [*_EXACT, "x ^ 2 + y"] if kind.startswith("Handwritten") else [*_WORDS, "Hello World", "1,234.50"])
    return Made(one.gold, one.answer, group=kind)


MAKERS: dict[str, Callable[[Rng], Made]] = {
    "chartqa": _chart,
    "erqa": lambda rng: _option(rng, 4),
    "geometry3k": lambda rng: _option(rng, 4),
    "hrbench": lambda rng: _option(rng, 4),
    "mathvision": _mathematics,
    "microvqa": _option,
    "msearthmcq": lambda rng: _option(rng, 4),
    "ocrbench": _ocr,
    "slake": _text,
    "tallyqa": _count,
    "vlmsareblind": _blind,
    "vstar": lambda rng: _option(rng, 4),
}
