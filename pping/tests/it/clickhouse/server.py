"""Serves ClickHouse's engine (chDB) by ClickHouse's HTTP interface, as far as it is used for loading and querying records:

    server.py PORT DIRECTORY

A request is a POST. The query is the URL's parameter `query`, the body, or both, one after the other; parameters of the query
are `param_NAME`, and all other parameters are settings. The answer is what the engine says, or its error with status 400.
One statement a request, as with ClickHouse.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

# Dates are shown in the time zone of the server, and tests compare them.
os.environ["TZ"] = "UTC"

from chdb import session  # noqa: E402

NOT_SETTINGS = {"query", "default_format", "user", "password", "database"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        try:
            status, answer = 200, self.run()
        except Exception as error:  # whatever the engine says is for the client
            status, answer = 400, f"{error}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        # One client at a time: one that stays would keep the others out.
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer)

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def run(self):
        arguments = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        parts = [arguments.get("query", ""), self.body().decode()]
        query = "\n".join(part for part in parts if part)
        parameters = {
            name.removeprefix("param_"): value for name, value in arguments.items() if name.startswith("param_")
        }
        for name, value in arguments.items():
            if name not in NOT_SETTINGS and not name.startswith("param_"):
                self.server.engine.query(f"SET {name} = {value}")
        answer = self.server.engine.query(query, arguments.get("default_format", "TabSeparated"), params=parameters)
        return answer.bytes() if answer is not None else b""

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
server.engine = session.Session(sys.argv[2])
print("listening on", server.server_port, flush=True)
server.serve_forever()
