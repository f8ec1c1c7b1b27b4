"""Level-2 procedures: steps, conditions, pictures, repair, and faults that name their step."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from PIL import Image

from experts.images import Picture, load_picture
from experts.outcome import ExpertFailure, ExpertReply, Outcome
from experts.procedure import run_procedure
from experts.tools.result import ToolResult
from registry.schema import Subskill

PICTURE = load_picture(Image.new("RGB", (60, 60), (1, 2, 3)))
PART = PICTURE.crop((0, 0, 40, 40))


class Scripted:
    """Answers asks one after another; tools read text or cut a part out."""

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.asked: list[tuple[str, str | None, tuple[Picture, ...]]] = []
        self.used: list[tuple[str, Picture, dict[str, str]]] = []
        self.missing: list[str] = []

    async def ask(self, prompt: str, system: str | None, pictures: Sequence[Picture]) -> ExpertReply:
        self.asked.append((prompt, system, tuple(pictures)))
        reply = self.replies.pop(0)
        if reply == "!":
            raise ExpertFailure(Outcome.TIMEOUT, "too slow")
        return ExpertReply(reply)

    async def use(self, tool: str, picture: Picture, args: dict[str, str]) -> ToolResult:
        self.used.append((tool, picture, args))
        if tool == "dead":
            raise ExpertFailure(Outcome.UNAVAILABLE, "nobody listens")
        if tool == "whole":
            return ToolResult("nothing to enlarge", None, (picture,))
        if tool == "zoom":
            return ToolResult("cut", {"box": [0, 0, 40, 40]}, (PART,))
        return ToolResult("A 3 B 5", {"B": 5, "A": 3})

    def missed(self, failure: ExpertFailure) -> None:
        self.missing.append(failure.message)

    @property
    def prompts(self) -> list[str]:
        return [prompt for prompt, _, _ in self.asked]


def run(procedure: dict, *replies: str, pictures: Sequence[Picture] = (PICTURE,)) -> tuple[str, Scripted]:
    subskill = Subskill(name="Read_Values", description="d", procedure=procedure)  # type: ignore[arg-type]
    calls = Scripted(*replies)
    return asyncio.run(run_procedure("Charts", subskill, "How high is B?", pictures, calls)), calls


def fails(procedure: dict, *replies: str, **options) -> ExpertFailure:
    with pytest.raises(ExpertFailure) as caught:
        run(procedure, *replies, **options)
    return caught.value


def test_the_answer_is_the_text_of_the_last_ask():
    answer, calls = run(
        {"steps": [{"ask": "{{ skill }}/{{ subskill }}: {{ question }}"}, {"ask": "sure?"}]}, "4", " 5 "
    )
    assert answer == "5"
    assert calls.prompts == ["Charts/Read_Values: How high is B?", "sure?"]
    assert calls.asked[0][2] == (PICTURE,)


def test_what_a_tool_found_is_there_as_text_data_and_json():
    answer, calls = run(
        {
            "steps": [
                {"tool": "ocr", "save": "ocr", "args": {"words": "{{ question.split()[-1] }}"}},
                {
                    "ask": "{{ ocr.text }}|{{ ocr.data.B }}|{{ ocr.json }}|{{ ocr }}",
                    "system": "For {{ skill }}",
                },
            ]
        },
        "5",
    )
    assert answer == "5"
    assert calls.used == [("ocr", PICTURE, {"words": "B?"})]
    assert calls.asked[0][:2] == ('A 3 B 5|5|{"A":3,"B":5}|A 3 B 5', "For Charts")


def test_a_saved_reply_is_text_for_later_steps_and_the_answer():
    answer, _ = run(
        {"steps": [{"ask": "first", "save": "draft"}, {"ask": "second"}], "answer": "{{ draft | upper }}!"},
        "no",
        "x",
    )
    assert answer == "NO!"


def test_a_step_whose_condition_fails_is_passed_over_and_what_it_saves_is_empty():
    steps = [
        {"tool": "ocr", "save": "ocr", "when": "'read' in question"},
        {"tool": "zoom", "save": "part", "when": "not ocr"},
        {"ask": "[{{ ocr.text }}]{% if part %} part{% endif %}", "images": ["ocr", "part", "image"]},
    ]
    answer, calls = run({"steps": steps}, "ok")
    assert answer == "ok"
    assert [tool for tool, _, _ in calls.used] == ["zoom"]
    assert calls.asked[0] == ("[] part", None, (PART, PICTURE))


def test_a_tool_works_on_the_picture_that_an_earlier_one_cut_out():
    steps = [
        {"tool": "zoom", "save": "part"},
        {"tool": "ocr", "images": ["part"]},
        {"ask": "q", "images": []},
    ]
    _, calls = run({"steps": steps}, "ok")
    assert calls.used[1][:2] == ("ocr", PART)
    assert calls.asked[0][2] == ()


REPAIR = {
    "steps": [{"ask": "q", "save": "draft"}],
    "repair": {
        "when": "not draft.isdigit()",
        "rounds": 2,
        "steps": [{"ask": "a number, not {{ draft }}", "save": "draft"}],
    },
}


def test_repair_stops_as_soon_as_its_condition_fails():
    assert run(REPAIR, "7")[1].prompts == ["q"]
    answer, calls = run(REPAIR, "seven", "7")
    assert answer == "7"
    assert calls.prompts == ["q", "a number, not seven"]


def test_repair_is_bounded_by_its_rounds():
    answer, calls = run(REPAIR, "a", "b", "c")
    assert answer == "c"
    assert len(calls.prompts) == 3


def test_an_empty_answer_stays_empty():
    assert run({"steps": [{"ask": "q"}]}, "  ")[0] == ""


@pytest.mark.parametrize(
    ("procedure", "words"),
    [
        (
            {"steps": [{"ask": "ok"}, {"ask": "{{ question.nothing }}"}]},
            "step 2: the template fails: UndefinedError",
        ),
        ({"steps": [{"ask": "{{ 1 // 0 }}"}]}, "step 1: the template fails: ZeroDivisionError"),
        ({"steps": [{"ask": "x", "when": "question < 3"}]}, "step 1: the condition fails: TypeError"),
        (
            {"steps": [{"ask": "x"}], "answer": "{{ question.__class__ }}"},
            "answer: the template fails: SecurityError",
        ),
        ({"steps": [{"ask": "{{ 'x' * 10 ** 10 }}"}]}, "step 1: the template fails: SecurityError"),
        ({"steps": [{"ask": "{{ 10 ** 1000 }}"}]}, "SecurityError: a power"),
        ({"steps": [{"ask": "{{ 'x' * 99999 }}"}]}, "repeated to more than 10000 times"),
        (
            {"steps": [{"ask": "{% for i in range(2000) %}{{ 'x' * 1000 }}{% endfor %}"}]},
            "the text grew over 1000000 characters",
        ),
        ({"steps": [{"ask": "{{ question.format_map }}{{ '{0.__class__}'.format(1) }}"}]}, "SecurityError"),
    ],
)
def test_template_faults_name_skill_subskill_and_step(procedure, words):
    failed = fails(procedure, "a", "b")
    assert failed.outcome is Outcome.ERROR
    assert failed.message.startswith("skill 'Charts', subskill 'Read_Values', ")
    assert words in failed.message


def test_text_from_outside_is_never_rendered_as_a_template():
    _, calls = run({"steps": [{"ask": "q", "save": "reply"}, {"ask": "{{ reply }}"}]}, "{{ 7 * 7 }}", "x")
    assert calls.prompts[1] == "{{ 7 * 7 }}"


def test_a_failing_call_ends_the_procedure_and_names_its_step():
    failed = fails({"steps": [{"ask": "q"}, {"ask": "q"}, {"ask": "q"}]}, "1", "!")
    assert failed.outcome is Outcome.TIMEOUT
    assert failed.message == "skill 'Charts', subskill 'Read_Values', step 2: too slow"
    again = fails({**REPAIR, "answer": "x"}, "no", "!")
    assert "repair round 1, step 1: too slow" in again.message


def test_an_optional_tool_that_fails_leaves_an_empty_result_and_is_told():
    answer, calls = run(
        {
            "steps": [
                {"tool": "dead", "save": "close", "optional": True},
                {"ask": "{{ question }}[{{ close.text }}]", "images": ["image", "close"]},
            ]
        },
        "5",
    )
    assert answer == "5"
    assert calls.asked == [("How high is B?[]", None, (PICTURE,))]
    assert calls.missing == ["skill 'Charts', subskill 'Read_Values', step 1: nobody listens"]


def test_a_tool_that_is_needed_ends_the_procedure():
    failure = fails({"steps": [{"tool": "dead", "save": "close"}, {"ask": "{{ question }}"}]})
    assert failure.outcome is Outcome.UNAVAILABLE


def test_a_picture_goes_along_once_whatever_names_it_has():
    _, calls = run(
        {"steps": [{"tool": "whole", "save": "close"}, {"ask": "{{ question }}", "images": ["image", "close"]}]}, "5"
    )
    assert calls.asked[0][2] == (PICTURE,)


def test_only_a_tool_may_be_optional():
    with pytest.raises(ValueError, match="'optional' belongs to a tool step"):
        run({"steps": [{"ask": "{{ question }}", "optional": True}]}, "5")
