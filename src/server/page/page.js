// The page's chat and gauges. Everything that a model wrote is set as text, never as markup.
"use strict";

const $ = (id) => document.getElementById(id);
const history_ = []; // messages as the API wants them
let running = null; // AbortController of the answer under way

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}

function headers() {
  const key = $("api-key").value;
  return key ? { Authorization: "Bearer " + key } : {};
}

// --- The chat

function requestBody() {
  const body = { messages: [...history_], stream: true, stream_options: { include_usage: true } };
  const instructions = $("instructions").value.trim();
  if (instructions) body.messages.unshift({ role: "system", content: instructions });
  if ($("effort").value) body.reasoning_effort = $("effort").value;
  if ($("temperature").value !== "") body.temperature = Number($("temperature").value);
  if ($("max-tokens").value !== "") body.max_tokens = Number($("max-tokens").value);
  const tools = $("tools").value.trim();
  if (tools) body.tools = JSON.parse(tools);
  return body;
}

// Data of server-sent events, as they come.
async function* readEvents(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const data = text.slice(0, end).split("\n").filter((line) => line.startsWith("data: "));
      if (data.length) yield data.map((line) => line.slice(6)).join("\n");
    }
  }
}

async function errorText(response) {
  try {
    return (await response.json()).error.message;
  } catch {
    return "HTTP " + response.status;
  }
}

// An answer on the page and, at its end, in the history.
class Answer {
  constructor() {
    this.element = make("div", "message busy");
    this.text = make("div", "answer");
    this.element.append(this.text);
    this.message = { role: "assistant", content: "", reasoning_content: "" };
    this.calls = [];
    this.begin = performance.now();
    $("chat").append(this.element);
  }

  take(chunk) {
    if (chunk.error) throw new Error(chunk.error.message);
    if (chunk.usage) this.usage = chunk.usage;
    const choice = chunk.choices && chunk.choices[0];
    if (!choice) return;
    if (choice.finish_reason) this.finishReason = choice.finish_reason;
    const delta = choice.delta || {};
    this.addReasoning(delta.reasoning_content || delta.reasoning || "");
    if (delta.content) {
      if (this.reasoning && !this.message.content) this.reasoning.open = false;
      this.message.content += delta.content;
      this.text.textContent = this.message.content;
    }
    for (const part of delta.tool_calls || []) this.addCall(part);
  }

  addReasoning(text) {
    if (!text) return;
    if (!this.reasoning) {
      this.reasoning = make("details", "reasoning");
      this.reasoning.open = true;
      this.reasoning.append(make("summary", "", "Reasoning"), make("div"));
      this.element.prepend(this.reasoning);
    }
    this.message.reasoning_content += text;
    this.reasoning.lastChild.textContent = this.message.reasoning_content;
  }

  addCall(part) {
    let call = this.calls[part.index];
    if (!call) {
      call = { id: part.id, name: part.function.name, arguments: "", element: make("div", "call") };
      call.element.append(make("b", "", call.name), make("pre"));
      this.calls[part.index] = call;
      this.element.append(call.element);
    }
    call.arguments += (part.function && part.function.arguments) || "";
    call.element.querySelector("pre").textContent = call.arguments;
  }

  end(fault) {
    this.element.classList.remove("busy");
    const seconds = (performance.now() - this.begin) / 1000;
    const notes = [];
    if (this.usage) {
      const n = this.usage.completion_tokens;
      notes.push(`${n} tokens, ${(n / seconds).toFixed(1)} tokens/s`);
    }
    if (this.finishReason && !["stop", "tool_calls"].includes(this.finishReason)) {
      notes.push("ended: " + this.finishReason);
    }
    if (notes.length) this.element.append(make("div", "note", notes.join(" · ")));
    if (fault) this.element.append(make("div", "note fault", fault));
    const message = this.message;
    if (this.calls.length) {
      message.tool_calls = this.calls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      }));
      if (!message.content) message.content = null;
    } else if (!message.content) {
      return; // nothing that could be part of a history
    }
    if (!message.reasoning_content) delete message.reasoning_content;
    history_.push(message);
    if (!fault && this.calls.length) askForResults(this.calls);
  }
}

// The user plays the tools.
function askForResults(calls) {
  let open = calls.length;
  for (const call of calls) {
    const form = make("form");
    const result = make("textarea");
    result.rows = 1;
    result.placeholder = "What " + call.name + " returns";
    form.append(result, make("button", "", "Send result"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      form.replaceWith(make("pre", "", result.value));
      history_.push({ role: "tool", tool_call_id: call.id, content: result.value });
      if (--open === 0) answer();
    });
    call.element.append(form);
  }
}

function scrollDown() {
  const chat = $("chat");
  if (chat.scrollHeight - chat.scrollTop - chat.clientHeight < 160) chat.scrollTop = chat.scrollHeight;
}

async function answer() {
  const view = new Answer();
  running = new AbortController();
  setBusy(true);
  let fault = "";
  try {
    const response = await fetch("v1/chat/completions", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers() },
      body: JSON.stringify(requestBody()),
      signal: running.signal,
    });
    if (!response.ok) throw new Error(await errorText(response));
    for await (const data of readEvents(response)) {
      if (data === "[DONE]") break;
      view.take(JSON.parse(data));
      scrollDown();
    }
  } catch (error) {
    fault = error.name === "AbortError" ? "stopped" : error.message;
  }
  running = null;
  view.end(fault);
  setBusy(false);
  scrollDown();
}

function setBusy(isBusy) {
  $("send").hidden = isBusy;
  $("stop").hidden = !isBusy;
  if (!isBusy) $("prompt").focus();
}

function send(event) {
  event.preventDefault();
  const text = $("prompt").value.trim();
  if (!text || running) return;
  $("hint")?.remove();
  history_.push({ role: "user", content: text });
  $("chat").append(make("div", "message user", text));
  $("prompt").value = "";
  fitPrompt();
  scrollDown();
  answer();
}

function fitPrompt() {
  const prompt = $("prompt");
  prompt.style.height = "auto";
  prompt.style.height = prompt.scrollHeight + 2 + "px";
}

// --- The gauges

let latest = null;

async function updateGauges() {
  try {
    const response = await fetch("gauges", { headers: headers() });
    if (!response.ok) throw new Error();
    const now = await response.json();
    $("model").textContent = now.model;
    $("gauge-running").textContent = now.running;
    $("gauge-waiting").textContent = now.waiting;
    $("gauge-kv").value = now.kv_usage;
    $("gauge-kv-text").textContent = Math.round(now.kv_usage * 100) + " %";
    if (latest && now.uptime_s > latest.uptime_s) {
      const rate = (now.generated_tokens - latest.generated_tokens) / (now.uptime_s - latest.uptime_s);
      $("gauge-rate").textContent = rate < 10 ? rate.toFixed(1) : Math.round(rate);
    }
    latest = now;
  } catch {
    latest = null;
    for (const name of ["running", "waiting", "rate", "kv-text"]) $("gauge-" + name).textContent = "–";
  }
  setTimeout(updateGauges, document.hidden ? 5000 : 1000);
}

// --- The start

$("composer").addEventListener("submit", send);
$("stop").addEventListener("click", () => running?.abort());
$("prompt").addEventListener("input", fitPrompt);
$("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) send(event);
});
$("settings-button").addEventListener("click", () => {
  const settings = $("settings");
  settings.hidden = !settings.hidden;
  $("settings-button").setAttribute("aria-expanded", String(!settings.hidden));
});
$("new-chat").addEventListener("click", () => {
  running?.abort();
  history_.length = 0;
  $("chat").replaceChildren();
  $("prompt").focus();
});
// Only for this tab, and gone with it.
$("api-key").value = sessionStorage.getItem("briar-api-key") || "";
$("api-key").addEventListener("input", () => sessionStorage.setItem("briar-api-key", $("api-key").value));
updateGauges();
