"""A running `briar serve` and raw sockets to it, for the tests in this folder."""
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from briar_command import BRIAR, TINY

# Sanitizer builds are several times slower; bounds on time are for the others.
SLOWNESS = float(os.environ.get("BRIAR_TEST_SLOWNESS", "1"))


class Server:
    """`briar serve` with these flags on a free port, until the end of the with block."""

    def __init__(self, *flags, env=None, port=0):
        self._log = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen([BRIAR, "--log-level", "info", "serve", "--port", str(port), *map(str, flags)],
                                        stdout=subprocess.PIPE, stderr=self._log, text=True,
                                        env={**os.environ, **(env or {})})
        line = self.process.stdout.readline()
        match = re.fullmatch(r"listening on (https?)://127\.0\.0\.1:(\d+)\n", line)
        self.port = int(match[2]) if match else None
        if match is None and not line.startswith("listening on unix:"):
            text = f"no address but {line!r}; standard error: {self.log()}"
            self.__exit__(None, None, None)
            raise AssertionError(text)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self._log.close()

    def log(self):
        self._log.seek(0)
        return self._log.read()

    def stop(self, timeout=30):
        """The exit code after SIGTERM; what it wrote as an error fails the test."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        assert "Sanitizer" not in self.log() and "runtime error" not in self.log(), self.log()
        return code

    def connect(self, timeout=20):
        return socket.create_connection(("127.0.0.1", self.port), timeout)

    def memory_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s*(\d+) kB", status.read())[1])

    def gauges(self, **headers):
        return self.get("/gauges", **headers).json()

    def get(self, path, **headers):
        return self.ask("GET", path, headers=headers)

    def post(self, path, body, **headers):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        return self.ask("POST", path, body, headers)

    def ask(self, method, path, body=None, headers=None):
        with self.connect() as sock:
            sock.sendall(request(method, path, body, {**(headers or {}), "Connection": "close"}))
            return read_response(sock)


def request(method, path, body=None, headers=None):
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in (headers or {}).items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


class Response:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body.decode("utf-8"))  # strict: answers are UTF-8 whatever came in

    def error(self):
        error = self.json()["error"]
        assert set(error) == {"message", "type", "param", "code"}, error
        return error

    def events(self):
        return [line[6:] for line in self.body.decode("utf-8").splitlines() if line.startswith("data: ")]


def read_response(sock):
    """One response; the rest of the bytes must be its own."""
    with contextlib.closing(sock.makefile("rb")) as file:
        return read_from(file)


def read_from(file):
    line = file.readline()
    if not line:
        return None
    status = int(re.match(rb"HTTP/1\.1 (\d{3}) ", line)[1])
    headers = {}
    while (line := file.readline().strip()):
        name, value = line.decode("ascii").split(": ", 1)
        headers[name.lower()] = value
    if status == 100:
        return read_from(file)
    if headers.get("transfer-encoding") == "chunked":
        body = b""
        while (size := int(file.readline() or b"-1", 16)):
            if size < 0:
                raise ConnectionError("the stream was cut off")
            body += file.read(size)
            assert file.readline() == b"\r\n"
        assert file.readline() == b"\r\n"
    elif "content-length" in headers:
        body = file.read(int(headers["content-length"]))
    else:
        body = b"" if status == 204 else file.read()
    return Response(status, headers, body)


def chat(max_tokens=16, **fields):
    return {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": max_tokens, **fields}


def wait_for(condition, seconds):
    """How long it took; None if it did not happen."""
    begin = time.monotonic()
    while time.monotonic() - begin < seconds * SLOWNESS:
        if condition():
            return time.monotonic() - begin
        time.sleep(0.01)
    return None


def in_background(function, *args, **kwargs):
    """A thread and the list its result will be in."""
    results = []

    def run():
        try:
            results.append(function(*args, **kwargs))
        except Exception as error:  # the test looks at it
            results.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, results


def tls_context():
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
