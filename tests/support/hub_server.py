#!/usr/bin/env python3
"""A hub for tests/unit/test_hub.c and tests/cli/hub.console: two servers on free ports of 127.0.0.1, the second standing for
another host. Prints "PORT OTHER_PORT" and serves until it is killed or its parent ends. What a
request gets depends on the model's name; answers tell whether the token came along."""
import http.server
import json
import os
import threading
import time

LARGE = 17 << 20


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    other = None  # "http://127.0.0.1:PORT" of the second server

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def seen(self):
        return json.dumps({
            "path": self.path,
            "authorization": self.headers.get("Authorization"),
            "agent": self.headers.get("User-Agent"),
        }).encode()

    def do_GET(self):
        name = self.path.split("/")[2] if self.path.count("/") > 1 else ""
        action = getattr(self, "do_" + name.replace("-", "_"), None)
        if self.path == "/seen":
            self.answer(200, self.seen())
        elif action and self.path.split("?")[0] == f"/test/{name}/resolve/main/config.json":
            action()
        else:
            self.answer(404, b"Repository not found", X_Error_Code="RepoNotFound")

    def do_ok(self):
        self.answer(200, self.seen())

    def do_tiny(self):
        self.answer(200, json.dumps({
            "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
            "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 1000,
        }).encode())

    def do_same(self):
        self.answer(307, b"redirecting", Location="/seen")

    def do_other(self):
        self.answer(302, b"redirecting", Location=self.other + "/seen")

    def do_userinfo(self):
        mine = "127.0.0.1:%d" % self.server.server_port
        self.answer(302, Location="http://" + mine + "@" + self.other[len("http://"):] + "/seen")

    def do_backslash(self):  # libcurl's host is what follows the @, a browser's what stands before the \\
        mine = "127.0.0.1:%d" % self.server.server_port
        self.answer(302, Location="http://" + mine + "\\@" + self.other[len("http://"):] + "/seen")

    def do_there_and_back(self):
        mine = "http://127.0.0.1:%d" % self.server.server_port
        self.answer(302, Location=self.other + "/test/back/resolve/main/config.json?" + mine)

    def do_back(self):
        self.answer(302, Location=self.path.split("?")[1] + "/seen")

    def do_loop(self):
        self.answer(302, Location=self.path)

    def do_five(self):
        self.answer(302, Location="/test/hop1/resolve/main/config.json")

    def do_six(self):
        self.answer(302, Location="/test/five/resolve/main/config.json")

    def do_hop1(self):
        self.answer(302, Location="/test/hop2/resolve/main/config.json")

    def do_hop2(self):
        self.answer(302, Location="/test/hop3/resolve/main/config.json")

    def do_hop3(self):
        self.answer(302, Location="/test/hop4/resolve/main/config.json")

    def do_hop4(self):
        self.answer(302, Location="/seen")

    def do_file_scheme(self):
        self.answer(302, Location="file:///etc/passwd")

    def do_nowhere(self):
        self.answer(302)

    def do_gated(self):
        self.answer(403, b"gated", X_Error_Code="GatedRepo")

    def do_private(self):
        self.answer(401, b"who are you")

    def do_nofile(self):
        self.answer(404, b"Entry not found", X_Error_Code="EntryNotFound")

    def do_broken(self):
        self.answer(500, b"oops")

    def do_slow(self):
        time.sleep(30)

    def do_slow_body(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(30):
            self.wfile.write(b"x")
            self.wfile.flush()
            time.sleep(1)

    def do_truncated(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"{\"hidden_size\":")
        self.close_connection = True

    def do_large(self):
        self.answer(200, b"x" * LARGE)

    def do_large_chunked(self):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for _ in range(LARGE >> 16):
            self.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")

    def do_garbage(self):
        self.wfile.write(b"\x00\x01 this is not HTTP\r\n\r\n")
        self.close_connection = True


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that hangs up is part of the test


def main():
    servers = [Server(("127.0.0.1", 0), Handler) for _ in range(2)]
    ports = [s.server_address[1] for s in servers]
    Handler.other = f"http://127.0.0.1:{ports[1]}"
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    print(*ports, flush=True)
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)


main()
