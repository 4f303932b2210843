#!/usr/bin/env python3
"""Agents' clients through a whole tool loop against tiny-harmony, on both APIs, streamed and whole."""
import client_venv

client_venv.enter()

# pylint: disable=wrong-import-position
import asyncio
import json
import os
import unittest

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")

import agents
import litellm
import openai
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from briar_command import TINY
from server_process import Server

QUESTION = "What is the weather in Rome?"
TOOL = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather now.",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}}}


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--model", TINY, "--quiet")
        cls.url = f"http://127.0.0.1:{cls.server.port}/v1"

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.server.__exit__(None, None, None)

    def run_agent(self, model, stream):
        calls = []

        @agents.function_tool
        def get_weather(location: str) -> str:
            """The weather now."""
            calls.append(location)
            return '{"temperature": 21}'

        agent = agents.Agent(name="weather", tools=[get_weather], model=model,
                             model_settings=agents.ModelSettings(temperature=0, max_tokens=300))

        async def run():
            if not stream:
                return await agents.Runner.run(agent, QUESTION)
            result = agents.Runner.run_streamed(agent, QUESTION)
            async for _ in result.stream_events():
                pass
            return result

        result = asyncio.run(run())
        self.assertTrue(calls)
        self.assertTrue(result.final_output)

    def test_openai_agents(self):
        agents.set_tracing_disabled(True)
        for kind in (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel):
            for stream in (False, True):
                with self.subTest(kind=kind.__name__, stream=stream):
                    client = openai.AsyncOpenAI(base_url=self.url, api_key="none")
                    self.run_agent(kind(model="tiny-harmony", openai_client=client), stream)

    def test_litellm_chat(self):
        for stream in (False, True):
            with self.subTest(stream=stream):
                messages = [{"role": "user", "content": QUESTION}]
                message = self.litellm_chat(messages, stream)
                self.assertIsInstance(message.reasoning_content, str)
                call = message.tool_calls[0]
                self.assertIsInstance(json.loads(call.function.arguments)["location"], str)
                messages += [message.model_dump(), {"role": "tool", "tool_call_id": call.id, "content": '{"temperature": 21}'}]
                self.assertTrue(self.litellm_chat(messages, stream).content)

    def litellm_chat(self, messages, stream):
        answer = litellm.completion(model="openai/tiny-harmony", api_base=self.url, api_key="none", messages=messages,
                                    tools=[TOOL], temperature=0, max_tokens=300, stream=stream)
        if stream:
            answer = litellm.stream_chunk_builder(list(answer), messages=messages)
        return answer.choices[0].message

    def test_litellm_responses(self):
        for stream in (False, True):
            with self.subTest(stream=stream):
                answer = litellm.responses(model="openai/tiny-harmony", api_base=self.url, api_key="none",
                                           input=QUESTION, tools=[{"type": "function", **TOOL["function"]}],
                                           temperature=0, max_output_tokens=300, stream=stream)
                if stream:
                    answer = [e for e in answer if e.type == "response.completed"][-1].response
                self.assertEqual(answer.output[-1].type, "function_call")

    def test_langchain(self):
        @tool
        def get_weather(location: str) -> str:
            """The weather now."""
            return f'{{"temperature": 21, "location": "{location}"}}'

        for use_responses_api in (False, True):
            for stream in (False, True):
                with self.subTest(responses=use_responses_api, stream=stream):
                    model = ChatOpenAI(model="tiny-harmony", base_url=self.url, api_key="none", temperature=0,
                                       max_tokens=300, use_responses_api=use_responses_api).bind_tools([get_weather])
                    messages = [HumanMessage(QUESTION)]
                    answer = self.langchain_answer(model, messages, stream)
                    self.assertEqual(answer.tool_calls[0]["name"], "get_weather")
                    for call in answer.tool_calls:
                        messages += [answer, ToolMessage(get_weather.invoke(call["args"]), tool_call_id=call["id"])]
                    self.assertTrue(self.langchain_answer(model, messages, stream).text)

    def langchain_answer(self, model, messages, stream):
        if not stream:
            return model.invoke(messages)
        whole = None
        for chunk in model.stream(messages):
            whole = chunk if whole is None else whole + chunk
        return whole


if __name__ == "__main__":
    unittest.main()
