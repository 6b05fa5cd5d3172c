"""Serves ClickHouse's engine (chDB) over the part of ClickHouse's HTTP interface that loads and queries records:

    server.py PORT DIRECTORY

A request is a POST with one statement, as with ClickHouse. The statement is the URL's parameter `query`, the body, or the
two joined. URL parameters `param_NAME` are parameters of the query, and all others are settings. The answer is the
engine's, or its error with status 400.
"""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import parse_qsl, urlsplit

# The engine prints dates in this time zone, and tests compare them.
os.environ["TZ"] = "UTC"

from chdb import session  # noqa: E402

NOT_SETTINGS = {"query", "default_format", "user", "password", "database"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        try:
            status, answer = 200, self.run()
        except Exception as error:  # report the engine's error to the client
            status, answer = 400, f"{error}\n".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        # The server handles one client at a time, so a connection kept open would keep the others out.
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
