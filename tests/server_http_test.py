#!/usr/bin/env python3
"""What the transport decides, over raw sockets: limits, keys, origins, clients that go or do not read. Ids are those
of the users' list of reports."""
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from server_process import (SLOWNESS, Server, chat, in_background, read_from, read_response, request, tls_context,
                            wait_for)

LOOP = ("--engine", "scripted:loop")
POST_ROUTES = ("/v1/chat/completions", "/v1/chat/completions/render", "/v1/completions", "/v1/responses",
               "/tokenize", "/detokenize")


def script(lines):
    """A file that --engine scripted: takes."""
    file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
    file.write("".join(json.dumps(line) + "\n" for line in lines))
    file.flush()
    return file


class SharedServer(unittest.TestCase):
    """Tests that leave their server as it was share one."""
    FLAGS = ()

    @classmethod
    def setUpClass(cls):
        cls.server = Server(*LOOP, *cls.FLAGS)

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.server.__exit__(None, None, None)

    def tearDown(self):
        self.assertEqual(self.server.get("/health").status, 200)


class Requests(SharedServer):
    def test_routes(self):
        self.assertEqual(self.server.get("/live").json(), {"status": "alive"})
        self.assertEqual(self.server.get("/ready").json(), {"status": "ready"})
        self.assertIn("version", self.server.get("/version").json())
        self.assertEqual(self.server.get("/nothing").error()["code"], "not_found")
        wrong = self.server.get("/v1/chat/completions")
        self.assertEqual((wrong.status, wrong.headers["allow"]), (405, "POST"))
        self.assertEqual(self.server.get("/%68ealth").status, 200)
        for path in ("/%zz", "/%", "/a%00b"):
            self.assertEqual(self.server.get(path).error()["type"], "invalid_request_error")

    def test_head_has_no_body(self):
        with self.server.connect() as sock:
            sock.sendall(request("HEAD", "/health") + request("GET", "/live"))
            data = b""
            while b"alive" not in data:
                data += sock.recv(4096)
        self.assertNotIn(b"ready", data)

    def test_request_id_is_echoed_if_it_is_fit(self):
        self.assertEqual(self.server.get("/health", X_Request_Id="my-id.1").headers["x-request-id"], "my-id.1")
        for bad in ("a b", "x" * 129, '"'):
            made = self.server.get("/health", X_Request_Id=bad).headers["x-request-id"]
            self.assertRegex(made, "^[0-9a-f]{32}$")

    def test_split_packets(self):
        body = json.dumps(chat(4)).encode()
        text = request("POST", "/v1/chat/completions", body)
        with self.server.connect() as sock:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(len(text)):
                sock.sendall(text[i:i + 1])
                if i % 16 == 0:
                    time.sleep(0.001)
            self.assertEqual(read_response(sock).status, 200)

    def test_chunked_bodies_in_small_pieces(self):
        body = json.dumps(chat(4)).encode()
        head = request("POST", "/v1/chat/completions", None, {"Transfer_Encoding": "chunked"})
        chunks = b"".join(b"%x;note=1\r\n%c\r\n" % (1, byte) for byte in body)
        with self.server.connect() as sock:
            sock.sendall(head + chunks + b"0\r\nTrailer: x\r\n\r\n")
            self.assertEqual(read_response(sock).status, 200)

    def test_pipelining_answers_in_order(self):
        with self.server.connect() as sock:
            sock.sendall(request("POST", "/v1/chat/completions", json.dumps(chat(5)).encode()) +
                         request("GET", "/live") + request("GET", "/nothing") + request("GET", "/ready"))
            with sock.makefile("rb") as file:
                statuses = [read_from(file) for _ in range(4)]
        self.assertEqual([r.status for r in statuses], [200, 200, 404, 200])
        self.assertIn("choices", statuses[0].json())
        self.assertEqual(statuses[1].json()["status"], "alive")

    def test_keep_alive_and_http_1_0(self):
        with self.server.connect() as sock, sock.makefile("rb") as file:
            for _ in range(3):
                sock.sendall(request("GET", "/live"))
                self.assertEqual(read_from(file).status, 200)
        with self.server.connect() as sock:
            body = json.dumps(chat(3, stream=True)).encode()
            sock.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            answer = read_response(sock)
        self.assertNotIn("transfer-encoding", answer.headers)
        self.assertEqual(answer.events()[-1], "[DONE]")

    def test_expect_100_continue(self):
        body = json.dumps(chat(3)).encode()
        text = request("POST", "/v1/chat/completions", body, {"Expect": "100-continue"})
        with self.server.connect() as sock:
            sock.sendall(text[:-len(body)])
            self.assertTrue(sock.recv(100).startswith(b"HTTP/1.1 100 "))
            sock.sendall(body)
            self.assertEqual(read_response(sock).status, 200)

    def test_half_closed_before_the_answer_is_a_client_gone(self):
        with self.server.connect() as sock:
            sock.sendall(request("GET", "/live"))
            sock.shutdown(socket.SHUT_WR)
            self.assertEqual(read_response(sock).status, 200)  # answered at once, before anybody looked
        with self.server.connect() as sock:
            sock.sendall(request("POST", "/v1/chat/completions", json.dumps(chat(100000)).encode()))
            self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 1, 5))
            sock.shutdown(socket.SHUT_WR)
            self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 0, 1))
            self.assertIsNone(read_response(sock))

    def test_smuggling_shapes_are_refused(self):
        for headers in ("Content-Length: 4\r\nTransfer-Encoding: chunked", "Content-Length: 4\r\nContent-Length: 5",
                        "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 1e3",
                        "Bad Header: 1", " Folded: 1", "Host\x00: a"):
            with self.subTest(headers=headers), self.server.connect() as sock:
                sock.sendall(f"POST /tokenize HTTP/1.1\r\n{headers}\r\n\r\n".encode() + b"0\r\n\r\n")
                answer = read_response(sock)
                self.assertIn(answer.status, (400, 413))
                answer.error()
                self.assertEqual(answer.headers["connection"], "close")

    def test_content_coding_is_refused(self):
        self.assertEqual(self.server.post("/tokenize", b"\x1f\x8b", Content_Encoding="gzip").status, 415)

    def test_other_protocols(self):
        for hello in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 200, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      b"GET / HTTP/3.7\r\n\r\n", b"\r\n" * 3 + b"nonsense\r\n\r\n"):
            with self.subTest(hello=hello[:8]), self.server.connect() as sock:
                sock.sendall(hello)
                sock.shutdown(socket.SHUT_WR)
                answer = read_response(sock)
                if answer is not None:
                    self.assertIn(answer.status, (400, 505))

    def test_X01_nested_arrays(self):
        for depth in (3000, 200000):
            nested = b"[" * depth + b"]" * depth
            for field in (b"tools", b"ignored_by_all"):
                body = json.dumps(chat(3)).encode()[:-1] + b',"' + field + b'":' + nested + b"}"
                answer = self.server.post("/v1/chat/completions", body)
                self.assertEqual(answer.status, 400)
                answer.error()
        inside = chat(3)
        inside["messages"][0]["content"] = "[" * 200000
        self.assertIn(self.server.post("/v1/chat/completions", {**inside, "messages": [
            {"role": "user", "content": "[" * 3000 + "]" * 3000}]}).status, (200,))

    def test_X03_same_depth_same_verdict_on_every_route(self):
        for depth in (50, 99, 10000, 100000):
            nested = b'{"x":' + b"[" * depth + b"]" * depth + b"}"
            verdicts = set()
            for route in POST_ROUTES:
                for is_chunked in (False, True):
                    verdicts.add(self.depth_verdict(route, nested, is_chunked))
            self.assertEqual(verdicts, {depth > 63}, f"depth {depth}")

    def depth_verdict(self, route, body, is_chunked):
        """Whether the request was refused for its depth; it lacks all that the routes need, so it is refused anyway."""
        with self.server.connect() as sock:
            if is_chunked:
                sock.sendall(request("POST", route, None, {"Transfer_Encoding": "chunked"}) +
                             b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
            else:
                sock.sendall(request("POST", route, body))
            answer = read_response(sock)
        self.assertEqual(answer.status, 400, answer.body)
        return "deep" in answer.error()["message"] or "nest" in answer.error()["message"]

    def test_X05_malformed_text(self):
        good = json.dumps(chat(3))
        cases = {"C3 28": b'{"messages":[{"role":"user","content":"\xc3\x28"}]}',
                 "lone surrogate": b'{"messages":[{"role":"user","content":"\\ud800"}]}',
                 "NUL": b'{"messages":[{"role":"user","content":"\x00"}]}', "BOM": b"\xef\xbb\xbf" + good.encode(),
                 "UTF-16": good.encode("utf-16"), "empty": b"", "trailing comma": good.encode()[:-1] + b",}"}
        for name, body in cases.items():
            with self.subTest(case=name):
                answer = self.server.post("/v1/chat/completions", body)
                self.assertEqual(answer.status, 400, answer.body)
                self.assertTrue(answer.error()["message"].isprintable())

    def test_X05_latin_1_header_is_never_echoed(self):
        with self.server.connect() as sock:
            sock.sendall(b"GET /nothing-\xe9 HTTP/1.1\r\nX-Request-Id: caf\xe9\r\nX-Other: caf\xe9\r\n\r\n")
            answer = read_response(sock)
        self.assertIn(answer.status, (400, 404))
        answer.error()
        self.assertNotIn("\xe9", str(answer.headers))

    def test_K13_closed_after_ten_events(self):
        with self.server.connect() as sock, sock.makefile("rb") as file:
            sock.sendall(request("POST", "/v1/chat/completions", json.dumps(chat(4000, stream=True)).encode()))
            seen = 0
            while seen < 10:
                seen += file.readline().startswith(b"data: ")
            self.assertEqual(self.server.gauges()["running"], 1)
        self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 0, 1))
        self.assertIsNotNone(wait_for(lambda: b'finished_reason="abort"' in self.server.get("/metrics").body, 1))

    def test_K13_reset_instead_of_closed(self):
        sock = self.server.connect()
        sock.sendall(request("POST", "/v1/chat/completions", json.dumps(chat(4000)).encode()))
        self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 1, 5))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        sock.close()
        self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 0, 1))

    def test_K13_a_storm_of_clients_that_go(self):
        rng = random.Random(1)
        bodies = [json.dumps(chat(4000, stream=s)).encode() for s in (True, False)]
        for _ in range(10):
            socks = []
            for _ in range(60):
                sock = self.server.connect()
                is_whole = rng.random() < 0.5
                sock.sendall(request("POST", "/v1/chat/completions", bodies[is_whole]))
                socks.append((sock, is_whole))
            rng.shuffle(socks)
            for sock, is_whole in socks:
                how = rng.random()
                if how < 0.3 and not is_whole:
                    sock.recv(rng.randint(1, 5000))
                elif how < 0.6:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                sock.close()
        self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 0, 1))

    def test_metrics(self):
        self.server.post("/v1/chat/completions", chat(5))
        self.server.get("/nothing-that-is-there")
        text = self.server.get("/metrics").body.decode()
        for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "prompt_tokens_total",
                     "generation_tokens_total", 'request_success_total{engine="0",model_name="scripted",',
                     "time_to_first_token_seconds_bucket", "inter_token_latency_seconds_sum",
                     "e2e_request_latency_seconds_count", "request_queue_time_seconds_count"):
            self.assertIn("briar_" + name, text)
        self.assertIn('route="/v1/chat/completions",status="200"', text)
        self.assertNotIn("nothing-that-is-there", text)


class Limits(SharedServer):
    FLAGS = ("--header-timeout", 1, "--body-timeout", 1, "--idle-timeout", 3, "--max-body-bytes", 100000,
             "--max-connections", 60, "--max-pending-bytes", 65536, "--write-timeout", 2)

    def flood(self, begin, piece, most):
        """Sends until refused; the answer and how much was sent."""
        sent = 0
        with self.server.connect() as sock:
            try:
                sock.sendall(begin)
                while sent < most:
                    sock.sendall(piece)
                    sent += len(piece)
            except (BrokenPipeError, ConnectionResetError):
                pass
            try:
                return read_response(sock), sent
            except ConnectionResetError:
                return None, sent

    def test_X07_floods_leave_memory_flat(self):
        before = self.server.memory_kib()
        floods = {"one header of 1 GB": (b"GET / HTTP/1.1\r\nX: ", b"a" * 65536, 1 << 30),
                  "100,000 headers": (b"GET / HTTP/1.1\r\n", b"".join(b"X%d: 1\r\n" % i for i in range(100000)), 1),
                  "a request line of 10 MB": (b"GET /", b"a" * 65536, 10 << 20),
                  "an endless body": (b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
                                      b"10000\r\n" + b"a" * 65536 + b"\r\n", 1 << 28),
                  "an endless chunk header": (b"POST /tokenize HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1;",
                                              b"a" * 65536, 1 << 28),
                  "a body that is too long": (b"POST /tokenize HTTP/1.1\r\nContent-Length: 100001\r\n\r\n", b"a" * 100001, 1)}
        for name, (begin, piece, most) in floods.items():
            with self.subTest(flood=name):
                answer, _ = self.flood(begin, piece, most)
                if answer is not None:  # one that was still sending may find a reset instead
                    self.assertIn(answer.status, (400, 413, 431))
                    answer.error()
                self.assertLess(self.server.memory_kib() - before, 20 * 1024)

    def test_X07_refusals_say_why(self):
        for text, status in ((b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
                             (b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 101 + b"\r\n", 431),
                             (b"GET / HTTP/1.1\r\nX: " + b"a" * 66000 + b"\r\n\r\n", 431),
                             (b"POST /tokenize HTTP/1.1\r\nContent-Length: 100001\r\n\r\n", 413)):
            with self.subTest(status=status), self.server.connect() as sock:
                sock.sendall(text)
                answer = read_response(sock)
                self.assertEqual(answer.status, status)
                answer.error()
                self.assertEqual(sock.recv(1), b"")  # and closes

    def test_X07_slow_senders_are_timed_out(self):
        for begin, byte in ((b"GET / HTTP/1.1\r\nX: ", b"a"),
                            (b"POST /tokenize HTTP/1.1\r\nContent-Length: 1000\r\n\r\n", b"a")):
            with self.subTest(begin=begin), self.server.connect() as sock:
                sock.sendall(begin)
                sock.settimeout(0.05)
                answer = b""
                start = time.monotonic()
                while time.monotonic() - start < 10 * SLOWNESS and not answer:
                    try:
                        sock.sendall(byte)
                        answer = sock.recv(12)
                    except TimeoutError:
                        pass
                self.assertEqual(answer, b"HTTP/1.1 408")
                self.assertLess(time.monotonic() - start, 6 * SLOWNESS)

    def test_idle_connections_are_closed(self):
        with self.server.connect() as sock:
            begin = time.monotonic()
            self.assertEqual(sock.recv(1), b"")
            self.assertLess(time.monotonic() - begin, 8 * SLOWNESS)

    def test_too_many_connections(self):
        held = [self.server.connect() for _ in range(60)]
        try:
            self.assertIsNotNone(wait_for(lambda: self.refused(), 2))
        finally:
            for sock in held:
                sock.close()
        self.assertIsNotNone(wait_for(lambda: not self.refused(), 3))

    def refused(self):
        try:
            return self.server.get("/live").status == 503
        except (ConnectionResetError, BrokenPipeError):
            return True

    def test_a_client_that_never_reads_is_cut_off(self):
        before = self.server.memory_kib()
        with socket.socket() as sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.connect(("127.0.0.1", self.server.port))
            body = json.dumps(chat(100000, stream=True, n=100, logprobs=True, top_logprobs=5)).encode()
            sock.sendall(request("POST", "/v1/chat/completions", body))
            self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 100, 10))
            self.assertIsNotNone(wait_for(lambda: self.server.gauges()["running"] == 0, 20))
        self.assertLess(self.server.memory_kib() - before, 50 * 1024)


class Keys(unittest.TestCase):
    def test_keys_from_everywhere_open_all_routes(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("from-file-1\n\nfrom-file-2\r\n")
            file.flush()
            with Server(*LOOP, "--api-key", "from-flag", "--api-key-file", file.name,
                        env={"BRIAR_API_KEY": "from-env"}) as server:
                for key in ("from-flag", "from-file-1", "from-file-2", "from-env"):
                    self.assertEqual(server.get("/v1/models", Authorization="Bearer " + key).status, 200)
                self.check_refusals(server)
                self.assertEqual(server.stop(), 0)

    def check_refusals(self, server):
        for value in ("Bearer wrong", "Bearer from-fla", "Bearer from-flag2", "Bearer ", "from-flag", "Basic from-flag"):
            self.assertEqual(server.get("/v1/models", Authorization=value).status, 401)
        for path in ("/v1/models", "/metrics", "/gauges", "/version", "/nothing"):
            answer = server.get(path)
            self.assertEqual((answer.status, answer.headers["www-authenticate"]), (401, "Bearer"))
            self.assertEqual(answer.error()["type"], "authentication_error")
        for path in POST_ROUTES:
            self.assertEqual(server.post(path, chat(1)).status, 401)
        for path in ("/health", "/live", "/ready", "/", "/page.js", "/page.css"):
            self.assertEqual(server.get(path).status, 200)
        # Without a key nobody gets a body read.
        with server.connect() as sock:
            sock.sendall(b"POST /v1/completions HTTP/1.1\r\nContent-Length: 30000000\r\n\r\n")
            self.assertEqual(read_response(sock).status, 401)

    def test_an_empty_key_file_is_no_open_door(self):
        with tempfile.NamedTemporaryFile("w") as file:
            with self.assertRaisesRegex(AssertionError, "there is no key in it"):
                Server(*LOOP, "--api-key-file", file.name)


class Origins(unittest.TestCase):
    PREFLIGHT = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "authorization"}

    def allow_headers(self, answer):
        return {k: v for k, v in answer.headers.items() if k.startswith("access-control-")}

    def test_X15_strangers_by_default(self):
        with Server(*LOOP) as server:
            for origin in ("https://evil.example", "null"):
                preflight = server.ask("OPTIONS", "/v1/chat/completions", headers={"Origin": origin, **self.PREFLIGHT})
                self.assertEqual(self.allow_headers(preflight), {})
                posted = server.post("/v1/chat/completions", chat(1), Origin=origin, Content_Type="text/plain")
                self.assertEqual(posted.status, 403)  # a page may post so without a preflight
                self.assertEqual(self.allow_headers(posted), {})
                self.assertEqual(self.allow_headers(server.get("/v1/models", Origin=origin)), {})
            own = server.post("/v1/chat/completions", chat(1), Origin="http://localhost")
            self.assertEqual(own.status, 200)

    def test_X15_allowed_origins_are_named(self):
        allowed = "https://app.example"
        with Server(*LOOP, "--cors-origin", allowed, "--cors-origin", "http://localhost:3000", "--api-key", "k") as server:
            preflight = server.ask("OPTIONS", "/v1/chat/completions", headers={"Origin": allowed, **self.PREFLIGHT})
            self.assertEqual(preflight.status, 204)
            self.assertEqual(preflight.headers["access-control-allow-origin"], allowed)
            self.assertIn("Authorization", preflight.headers["access-control-allow-headers"])
            answers = [preflight, server.post("/v1/chat/completions", chat(1), Origin=allowed, Authorization="Bearer k"),
                       server.post("/v1/chat/completions", chat(1), Origin=allowed)]
            self.assertEqual([a.status for a in answers], [204, 200, 401])
            for answer in answers:
                self.assertEqual(answer.headers["access-control-allow-origin"], allowed)
                self.assertEqual(answer.headers["vary"], "Origin")
                self.assertNotIn("access-control-allow-credentials", answer.headers)
            stranger = server.post("/v1/chat/completions", chat(1), Origin="https://app.example.evil",
                                   Authorization="Bearer k")
            self.assertEqual(self.allow_headers(stranger), {})

    def test_X15_no_wildcard(self):
        for origin in ("*", "https://*.example", "app.example", "https://app.example/"):
            with self.assertRaisesRegex(AssertionError, "--cors-origin"):
                Server(*LOOP, "--cors-origin", origin)


class Drain(unittest.TestCase):
    def stream(self, server, seconds):
        """A stream that takes so long (100 tokens a second), under way."""
        thread, results = in_background(server.post, "/v1/chat/completions", chat(int(seconds * 100), stream=True))
        # Its first events are out: before them a shutdown answers 503 instead.
        self.assertIsNotNone(wait_for(lambda: server.gauges()["generated_tokens"] >= 20, 10))
        return thread, results

    def check_not_ready(self, server):
        self.assertIsNotNone(wait_for(lambda: server.get("/ready").status == 503, 1))
        self.assertEqual(server.get("/health").status, 503)
        self.assertEqual(server.get("/live").status, 200)
        refused = server.post("/v1/chat/completions", chat(1))
        self.assertEqual((refused.status, refused.error()["code"]), (503, "shutting_down"))
        self.assertIn("retry-after", refused.headers)

    def test_X19_streams_finish_within_the_grace(self):
        with Server(*LOOP, "--grace", 30) as server:
            thread, results = self.stream(server, 2)
            server.process.send_signal(signal.SIGTERM)
            self.check_not_ready(server)
            thread.join()
            self.assertEqual(results[0].events()[-1], "[DONE]")
            self.assertEqual(server.process.wait(10), 0)

    def test_X19_streams_end_with_an_error_event_after_it(self):
        for grace, longest in ((1, 4), (0, 3)):
            with self.subTest(grace=grace), Server(*LOOP, "--grace", grace) as server:
                thread, results = self.stream(server, 20)
                begin = time.monotonic()
                server.process.send_signal(signal.SIGTERM)
                if grace:
                    self.check_not_ready(server)
                thread.join()
                error = json.loads(results[0].events()[-1])
                self.assertEqual((error["type"], error["error"]["code"]), ("error", "shutting_down"))
                self.assertEqual(server.process.wait(10), 0)
                self.assertLess(time.monotonic() - begin, longest * SLOWNESS)

    def test_X19_whole_answers_get_503(self):
        with Server(*LOOP, "--grace", 0) as server:
            thread, results = in_background(server.post, "/v1/chat/completions", chat(2000))
            self.assertIsNotNone(wait_for(lambda: server.gauges()["running"] == 1, 5))
            self.assertEqual(server.stop(), 0)
            thread.join()
            self.assertEqual((results[0].status, results[0].error()["code"]), (503, "shutting_down"))

    def test_X19_second_signal_ends_at_once(self):
        with Server(*LOOP, "--grace", 30) as server:
            thread, _ = self.stream(server, 20)
            server.process.send_signal(signal.SIGTERM)
            self.check_not_ready(server)
            begin = time.monotonic()
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(10), 0)
            self.assertLess(time.monotonic() - begin, 1 * SLOWNESS)
            thread.join()

    def test_X19_background_responses_end_with_the_server(self):
        with Server(*LOOP, "--grace", 0) as server:
            made = server.post("/v1/responses", {"input": "Hello", "background": True, "max_output_tokens": 100000})
            self.assertEqual(made.json()["status"], "in_progress")
            begin = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - begin, 3 * SLOWNESS)

    def test_idle_server_stops_at_once(self):
        with Server(*LOOP) as server, server.connect():  # an open connection holds nothing up
            begin = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - begin, 2 * SLOWNESS)


class Transports(unittest.TestCase):
    def test_silent_streams_say_something(self):
        with script([{"tokens": [200005, 17196, 200008, 12194, 200002], "delay_us": 400000}]) as file:
            with Server("--engine", "scripted:" + file.name, "--ping-interval", 0.1) as server:
                answer = server.post("/v1/chat/completions", chat(stream=True))
                self.assertIn(b": ping\n\n", answer.body)
                self.assertEqual(answer.events()[-1], "[DONE]")
                self.assertEqual(server.post("/v1/chat/completions", chat()).status, 503)  # one line, one request

    def test_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "briar.sock")
            with Server(*LOOP, "--unix-socket", path) as server:
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.connect(path)
                    sock.sendall(request("GET", "/live"))
                    self.assertEqual(read_response(sock).status, 200)
                self.assertEqual(server.stop(), 0)
            self.assertFalse(os.path.exists(path))

    def test_tls(self):
        with tempfile.TemporaryDirectory() as folder:
            cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
            subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                            "-keyout", key, "-out", cert, "-days", "1", "-subj", "/CN=localhost"],
                           check=True, capture_output=True)
            with Server(*LOOP, "--tls-cert", cert, "--tls-key", key) as server:
                for stream in (False, True):
                    with tls_context().wrap_socket(server.connect()) as sock:
                        sock.sendall(request("POST", "/v1/chat/completions", json.dumps(chat(5, stream=stream)).encode(),
                                             {"Connection": "close"}))
                        self.assertEqual(read_response(sock).status, 200)
                        self.assertEqual(sock.recv(1), b"")  # an orderly end
                with server.connect() as sock:  # not TLS at all
                    sock.sendall(request("GET", "/live"))
                    self.assertNotIn(b"200 OK", sock.recv(100))
                with tls_context().wrap_socket(server.connect()) as sock:
                    sock.sendall(request("POST", "/v1/chat/completions", json.dumps(chat(4000, stream=True)).encode()))
                    sock.recv(10)
                self.assertEqual(server.stop(), 0)
            with self.assertRaisesRegex(AssertionError, "go together"):
                Server(*LOOP, "--tls-cert", cert)
            with self.assertRaisesRegex(AssertionError, "PEM"):
                Server(*LOOP, "--tls-cert", "/dev/null", "--tls-key", key)

    def test_port_in_use(self):
        with Server(*LOOP) as server:
            with self.assertRaisesRegex(AssertionError, "cannot listen on 127.0.0.1"):
                Server(*LOOP, port=server.port)


if __name__ == "__main__":
    unittest.main()
