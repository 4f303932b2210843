#!/usr/bin/env python3
"""Renders some chats with models' own Jinja templates: what src/formats/templates_test.cc compares with.

Usage: scripts/make_format_fixtures.py TEMPLATES > src/formats/testdata/templates.jsonl      (needs `pip install jinja2`)

TEMPLATES is a folder with the `chat_template` of models as NAME.jinja, for the names in FAMILIES. They are looked up in the
models' repositories and are not kept here. Each line is {"template", "markers", "name", "request", "text"}; `markers` are
the words by which Briar tells the template's variant.
"""

import json
import pathlib
import sys

import jinja2
import jinja2.sandbox

# What each template can do, and the words that registry.cc, chatml.cc, llama3.cc and mistral.cc look for in it.
FAMILIES = {
    "smollm2": {"tools": False, "later_system": True},
    "qwen2.5": {"tools": True, "later_system": True},
    "qwen3": {"tools": True, "later_system": True, "thinking": True},
    "llama3": {"tools": False, "later_system": True, "bos": "<|begin_of_text|>"},
    "llama3.2": {"tools": True, "later_system": True, "bos": "<|begin_of_text|>", "one_call": True},
    "llama2": {"tools": False, "bos": "<s>", "eos": "</s>"},
    "mistral-v1": {"tools": False, "bos": "<s>", "eos": "</s>"},
    "mistral-v3": {"tools": True, "bos": "<s>", "eos": "</s>", "system_in_last_message": True},
    "mistral-tekken": {"tools": True, "bos": "<s>", "eos": "</s>", "system_in_last_message": True},
}
MARKERS = ["<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>",
           r"<|im_start|>system\nYou are Qwen, created by Alibaba Cloud. You are a helpful assistant.<|im_end|>",
           "<|im_start|>", "<tool_call>", "<think>", "<|start_header_id|>", "Cutting Knowledge Date", "<<SYS>>", "[INST] ", "[INST]", " [/INST]",
           "[AVAILABLE_TOOLS]"]
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Gets the weather at a place.", "parameters": {
    "type": "object", "properties": {"place": {"type": "string", "description": "Überall, \u00e9\u2028"}, "days": {"type": "integer", "minimum": 1},
                                     "share": {"type": "number", "default": 1e-05}}, "required": ["place"]}}}
NOW = {"type": "function", "function": {"name": "now", "description": "The time."}}


def call(index, name, arguments):
    return {"id": f"call{index:05}", "type": "function", "function": {"name": name, "arguments": arguments}}


def result(index, name, content):
    return {"role": "tool", "name": name, "tool_call_id": f"call{index:05}", "content": content}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


PARIS = {"place": "Paris", "days": 2, "share": 0.5, "tags": ["a", None, True], "text": "\"\\\n\u00e9"}
CHATS = [
    ("one question", {}, [user("What is the capital of France?")]),
    ("spaces and breaks", {}, [user("\n  two\n\n lines \n")]),
    ("system", {}, [{"role": "system", "content": "Be brief."}, user("Hi")]),
    ("empty system", {}, [{"role": "system", "content": ""}, user("Hi")]),
    ("three turns", {}, [user("1+1?"), assistant(" 2 "), user("2+2?"), assistant("4"), user("And 漢字 🙂?")]),
    ("system and turns", {}, [{"role": "system", "content": " Count. "}, user("1"), assistant("2"), user("3")]),
    ("later system", {"later_system": True}, [user("1"), assistant("2"), {"role": "system", "content": "Stop."}, user("3")]),
    ("tools", {"tools": [WEATHER, NOW]}, [user("Weather in Paris?")]),
    ("tools and system", {"tools": [NOW]}, [{"role": "system", "content": "Be brief."}, user("Time?")]),
    ("a call and its result", {"tools": [WEATHER]}, [user("Weather?"), assistant("", tool_calls=[call(0, "get_weather", PARIS)]),
                                                     result(0, "get_weather", "{\"sky\": \"blue\"}")]),
    ("calls side by side", {"tools": [WEATHER, NOW], "many_calls": True}, [
        user("Weather and time?"), assistant("", tool_calls=[call(0, "get_weather", {"place": "Rome"}), call(1, "now", {})]),
        result(0, "get_weather", "sunny"), result(1, "now", "12:00"), assistant("Sunny, noon."), user("Thanks")]),
    ("text beside a call", {"tools": [NOW], "text_beside_call": True}, [
        user("Time?"), assistant("Let me see.", tool_calls=[call(0, "now", {})]), result(0, "now", "12:00")]),
    ("reasoning of a finished turn", {"thinking": True}, [user("1+1?"), assistant("2", reasoning_content="easy"), user("2+2?")]),
    ("reasoning of an open turn", {"thinking": True, "tools": [NOW]}, [
        user("1?"), assistant("a", reasoning_content="old"), user("Time?"),
        assistant("", reasoning_content="\nI need the time.\n", tool_calls=[call(0, "now", {})]), result(0, "now", "12:00")]),
    ("no reasoning wanted", {"thinking": True, "enable_thinking": False}, [user("Hi")]),
]


def wanted(family, options, messages):
    has_system = messages[0]["role"] == "system"
    return not ((options.get("tools") and not family["tools"]) or (options.get("later_system") and not family.get("later_system"))
                or (options.get("many_calls") and family.get("one_call")) or (options.get("thinking") and not family.get("thinking"))
                or (options.get("text_beside_call") and not family.get("bos") is None)
                or (has_system and family.get("system_in_last_message") and messages[-1]["role"] != "user"))


def main():
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    for name, family in FAMILIES.items():
        text = (pathlib.Path(sys.argv[1]) / f"{name}.jinja").read_text(encoding="utf-8")
        template = environment.from_string(text)
        markers = "\n".join(marker for marker in MARKERS if marker in text)
        for chat, options, messages in CHATS:
            if not wanted(family, options, messages):
                continue
            more = {key: options[key] for key in ("tools", "enable_thinking") if key in options}
            rendered = template.render(messages=messages, add_generation_prompt=True, bos_token=family.get("bos", ""), eos_token=family.get("eos", ""),
                                       date_string="26 Jul 2024", **more)
            print(json.dumps({"template": name, "markers": markers, "name": chat, "request": {"messages": messages, **more}, "text": rendered},
                             ensure_ascii=False))


if __name__ == "__main__":
    main()
