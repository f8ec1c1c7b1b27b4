"""Starter files for a new expert or skill: they pass `maestro registry check` as they are, and say what to change.

The one idea: every field is there. What is needed is written out; what may be left out stands behind a `#`
without a space (`#aliases: [...]`) with its default or an example, so that taking the `#` away switches it on.
"""

from __future__ import annotations

import json
import re
from typing import Literal, get_args

from registry.errors import UserFault
from registry.names import name_fault

Kind = Literal["expert", "skill"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_PLAIN = re.compile(r"[A-Za-z](?:[ _-]?[A-Za-z0-9])*")
_YAML_WORDS = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))

_EXPERT = """\
# An expert: a frozen model or program that answers questions about images.
# Check this file:  maestro registry check {file}
# A line that begins with '#' and no space is a field that is switched off: take the '#' away to use it.

experts:
  # The name that the policy writes: <search> {plain}@@Skill: question </search>. It is unique in the registry;
  # upper and lower case, spaces, '-' and '_' make no difference. It can't hold '@@', ':', '<' or '>'.
  {name}:{replace}
    # One sentence: which pictures and questions it is good at, and what it replies. The policy's prompt shows it.
    description: Reads one kind of picture (say which) and replies with one short answer (say of what kind).

    # Other names for the same expert.
    #aliases: ["{plain} v1"]

    # Who answers. `openai` is any server with an OpenAI-compatible API, such as vLLM.
    backend:
      type: openai
      model: organisation/model-name            # as the server calls it
      replicas:                                 # one line for each server; a larger weight gets more of the calls
        - {{url: "http://localhost:8000/v1", weight: 1}}
      #api_key_env: MY_API_KEY                   # the NAME of an environment variable; never write a key here
      #trust_remote_code: false                  # true lets a launcher run the code that comes with the model

    # Or a Python class with answer(prompt, pictures) -> str. Then in place of the backend above:
    # backend:
    #   type: python
    #   target: "my_package.my_module:MyExpert"  # or the name of an entry point in the group maestro.experts
    #   options: {{threshold: 0.5}}                # given to __init__ as keyword arguments

    # How it samples: temperature 0 takes the likeliest word; max_tokens bounds one reply.
    # reasoning_tail_chars: how much of the end of its reasoning stands in for an answer it left empty.
    #sampling: {{temperature: 0, top_p: 1, max_tokens: 512, reasoning_tail_chars: 0}}

    # What one call may use. timeout_s is in seconds, max_reply_bytes in bytes, max_concurrency in calls at once.
    #limits:
      #context_tokens: 8192
      #max_images: 1
      #max_output_tokens: 1024
      #timeout_s: 60
      #max_concurrency: 8
      #max_reply_bytes: 262144
      #hedge_after_s: 10                         # then a second request goes to another replica; none without it

    # Seconds for a whole delegation to it, all its calls, tools and retries included.
    #deadline_s: 60

    # For reports and for the launcher; nothing here changes an answer.
    #parameters_b: 8                              # billions of parameters
    #price: {{input_per_mtok: 0, output_per_mtok: 0}} # money per million tokens
{serving}
    # Replies are kept and used again only where the same question always gets the same reply.
    #deterministic: false
    #revision: "1"                                # change it when the model or program changes: kept replies expire
"""

_REPLACE = "\n    replace: true     # an earlier file has this name; this entry takes its place"
_SERVING = """\
    # How `maestro experts serve` starts it with vLLM; leave it out for servers that somebody else runs.
    #serving:
      #launch: auto                               # auto (replicas on this machine) | always | never
      #source: organisation/model-name            # folder or hub id of the weights, where it is not the model's name
      #replicas: 1                                # copies to start
      #tensor_parallel: 1                         # GPUs for one copy
      #bytes_per_parameter: 2                     # 2 is bfloat16
      #kv_kib_per_token: 144                      # KiB of cache for one token over all layers
      #contexts: 2                                # requests of full length whose cache must fit at once
      #gpu_memory_gb: 24                          # GiB on each of its GPUs, in place of these estimates
      #extra_args: [--max-num-seqs, "64"]         # words added to `vllm serve`
"""

_SKILL = """\
# A skill: the policy names it (Level-1); one of its subskills (Level-2) carries the question out.
# Check this file:  maestro registry check {file}
# Try the routing:  maestro registry route --registry embedded --registry {file} --skill {shell} --question "..."
# A line that begins with '#' and no space is a field that is switched off: take the '#' away to use it.

skills:
  # The name that the policy writes: <search> Expert@@{plain}: question </search>. It is unique in the registry;
  # upper and lower case, spaces, '-' and '_' make no difference. It can't hold '@@', ':', '<' or '>'.
  {name}:{replace}
    # One sentence: which questions it is for, what goes in and what comes out. The policy's prompt shows it.
    description: Questions about one kind of picture (say which); gives one short answer (say of what kind).

    # Other names for the same skill.
    #aliases: ["{plain} v1"]

    # How a subskill is chosen: `keyword` by the words of the question, `classify` by asking the expert, `auto` by
    # keywords and, where none is found, by asking the expert.
    #routing: auto
    # The subskill in doubt; without this line the first.
    #default: Direct_Reading
    # Seconds for a whole delegation under it; the longer of the expert's and the skill's counts.
    #deadline_s: 60

    subskills:
      Direct_Reading:
        # Shown to an expert that is asked to choose.
        description: Answer from the picture at once.
        #aliases: [Reading]
        # Words that lead here, found as whole words. Most hits win, then the longest keyword, then the order here.
        keywords: [read, what is]
        procedure:
          steps:
            # `ask` is what the expert is asked: a Jinja2 template that sees question, skill, subskill and whatever
            # an earlier step saved. The picture goes along by itself.
            - ask: |-
                Question: {{{{ question }}}}
                Reply with the answer and nothing else.

      Checked_Reading:
        description: Answer, then look a second time where the answer is long.
        keywords: [carefully, check]
        procedure:
          steps:
            # A tool step runs one of the registry's tools (`maestro registry show` lists them). Its result is saved
            # under a name; templates then see texts.text, texts.data and texts.json, and `images` may name the
            # picture that the tool made. To use it, name a tool of your registry and switch these lines on.
            #- tool: ocr
              #args: {{}}                         # values are templates, too
              #optional: true                     # a failure of the tool is an empty result, not the end
              #save: texts
            - ask: "Question: {{{{ question }}}}"
              system: You are careful and brief.      # the system prompt, also a template
              images: [image]                         # which pictures go along; [image] is the question's own
              when: question | length > 0             # a Jinja2 expression; the step is passed over where it is false
              save: draft
          # A bounded loop after the steps: while `when` holds, at most `rounds` (1 to 5) times.
          repair:
            when: draft.text | length > 80
            rounds: 1
            steps:
              - ask: "Give only the final value in this text: {{{{ draft.text }}}}"
                images: []
                save: draft
          # What goes back to the policy; without this line the reply to the last `ask`.
          answer: "{{{{ draft.text }}}}"
"""


def starter(kind: Kind, name: str, *, file: str = "FILE", replace: bool = False) -> str:
    """The starter file's text. `replace` is for a name that an earlier file has. Raises UserFault for a bad name."""
    fault = name_fault(name)
    if fault is not None:
        raise UserFault(fault, where="the name", fix="choose another one, for example Leaf-Reader")
    name = " ".join(name.split())
    plain = bool(_PLAIN.fullmatch(name)) and name.lower() not in _YAML_WORDS
    quoted = json.dumps(name, ensure_ascii=False)
    return (_EXPERT if kind == "expert" else _SKILL).format(
        name=name if plain else quoted,
        plain=name if plain else "Name",
        shell=name if plain and " " not in name else f"'{name}'" if "'" not in name else "NAME",
        file=file,
        replace=_REPLACE if replace else "",
        serving=_SERVING,
    )
