"""An OTLP/HTTP receiver for metrics, with OpenTelemetry's own types for Python: receiver.py PORT FOLDER [CERTIFICATE KEY]

FOLDER/mode decides how the receiver treats the next request: `accept`, or one of the faults in `Receiver.do_POST`. It
appends each accepted data point to FOLDER/points, and path, headers and time of every request to FOLDER/requests, as JSON
objects.
"""

import gzip
import http.server
import json
import pathlib
import ssl
import sys
import threading
import time

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality

LOCK = threading.Lock()


def attributes(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def points(request):
    """Yields the data points of a request with all their attributes and values."""
    for resource_metrics in request.resource_metrics:
        resource = attributes(resource_metrics.resource.attributes)
        for scope_metrics in resource_metrics.scope_metrics:
            for metric in scope_metrics.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                temporality = getattr(data, "aggregation_temporality", 0)
                for point in data.data_points:
                    known = {
                        "resource": resource,
                        "scope": scope_metrics.scope.name,
                        "name": metric.name,
                        "description": metric.description,
                        "unit": metric.unit,
                        "kind": kind,
                        "temporality": AggregationTemporality.Name(temporality),
                        "is_monotonic": getattr(data, "is_monotonic", None),
                        "attributes": attributes(point.attributes),
                        "start": point.start_time_unix_nano,
                        "time": point.time_unix_nano,
                    }
                    if kind == "exponential_histogram":
                        known["histogram"] = {
                            "count": point.count,
                            "sum": point.sum,
                            "scale": point.scale,
                            "zero_count": point.zero_count,
                            "zero_threshold": point.zero_threshold,
                            "offset": point.positive.offset,
                            "buckets": list(point.positive.bucket_counts),
                            "negative": sum(point.negative.bucket_counts),
                            "min": point.min,
                            "max": point.max,
                        }
                    elif kind == "histogram":
                        known["summary"] = {
                            "count": point.count,
                            "sum": point.sum,
                            "buckets": list(point.bucket_counts) + list(point.explicit_bounds),
                        }
                    else:
                        known["value"] = getattr(point, point.WhichOneof("value"))
                    yield known


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = None

    def append(self, file, records):
        with LOCK, open(self.folder / file, "a", encoding="utf-8") as output:
            output.write("".join(json.dumps(record) + "\n" for record in records))

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content_Type": "application/x-protobuf", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        mode, _, more = (self.folder / "mode").read_text().strip().partition(" ")
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.append("requests", [{"path": self.path, "headers": headers, "at": time.time()}])
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        # If the body is not such a message, this raises, and the client gets no answer.
        request = ExportMetricsServiceRequest.FromString(body)
        if mode == "hang":
            time.sleep(3600)
        elif mode == "status":
            status, _, retry_after = more.partition(" ")
            more = {"Retry_After": retry_after} if retry_after else {}
            self.answer(int(status), b"not now", Content_Type="text/plain", **more)
        elif mode == "garbage":
            self.wfile.write(b"\0\1\2 220 ready\r\n\r\n")
        elif mode == "page":
            self.answer(200, b"<html>welcome</html>", Content_Type="text/html")
        elif mode == "endless":
            self.send_response(200)
            self.end_headers()
            while True:
                self.wfile.write(b"a" * 65536)
        elif mode == "endless-head":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while True:
                self.wfile.write(b"X-More: " + b"a" * 65536 + b"\r\n")
        elif mode == "drip":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            while True:
                self.wfile.write(b"\0")
                time.sleep(1)
        else:
            self.append("points", points(request))
            response = ExportMetricsServiceResponse()
            if mode == "partial":
                response.partial_success.rejected_data_points = int(more)
                response.partial_success.error_message = "too old"
            self.answer(200, response.SerializeToString())
        self.close_connection = True

    def log_message(self, format, *arguments):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        print(f"{client_address}: {sys.exc_info()[1]!r}", file=sys.stderr, flush=True)


def main():
    port, folder, *tls = sys.argv[1:]
    Receiver.folder = pathlib.Path(folder)
    server = Server(("127.0.0.1", int(port)), Receiver)
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print("receiving", flush=True)
    server.serve_forever()


main()
