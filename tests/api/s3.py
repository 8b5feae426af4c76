"""A server that speaks as much of the S3 protocol as reading takes: objects, parts of them, lists.

Signatures are computed again from the secret (AWS Signature Version 4), so that wrong credentials
are refused as a real store refuses them.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

KEY, SECRET = "AKIATESTKEYOFDPFRAME", "s3cr3t/of+the=store"
_SIGNED = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request, ?"
    r"SignedHeaders=([^,]+), ?Signature=(\w+)"
)


def options(port: int, key: str = KEY, secret: str = SECRET) -> dict[str, str]:
    """Storage options for the server."""
    return {
        "aws_access_key_id": key,
        "aws_secret_access_key": secret,
        "aws_region": "eu-test-1",
        "aws_endpoint_url": f"http://127.0.0.1:{port}",
        "aws_allow_http": "true",
    }


@contextmanager
def serving(objects: Mapping[str, bytes]) -> Iterator[int]:
    """The port of a server that has some objects, by ``bucket/key``."""

    class Handler(_Handler):
        held = objects

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    held: Mapping[str, bytes] = {}

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on standard error."""

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def _answer(self, with_body: bool) -> None:
        parts = urlsplit(self.path)
        place = unquote(parts.path).lstrip("/")
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if not self._is_signed(parts.path, parts.query):
            self._send(403, b"<Error><Code>SignatureDoesNotMatch</Code></Error>", with_body)
        elif "list-type" in query:
            self._send(200, self._listing(place.rstrip("/"), query), with_body)
        elif place not in self.held:
            self._send(404, b"<Error><Code>NoSuchKey</Code></Error>", with_body)
        else:
            self._send_object(self.held[place], with_body)

    def _send_object(self, data: bytes, with_body: bool) -> None:
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            self._send(200, data, with_body)
            return
        first, last = asked.groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        extra = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        self._send(206, data[start : end + 1], with_body, extra)

    def _send(
        self, status: int, body: bytes, with_body: bool, extra: Mapping[str, str] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (extra or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", f'"{hashlib.md5(body).hexdigest()}"')
        self.send_header("Last-Modified", "Mon, 23 Nov 2026 00:00:00 GMT")
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _listing(self, bucket: str, query: Mapping[str, str]) -> bytes:
        """Objects that begin with a prefix; up to a delimiter, what they have in common."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = query.get("start-after", "")
        keys, common = [], set()
        for place in sorted(self.held):
            key = place.removeprefix(f"{bucket}/")
            if key == place or not key.startswith(prefix) or key <= after:
                continue
            folder, found, _ = key.removeprefix(prefix).partition(delimiter or "\0")
            if delimiter and found:
                common.add(prefix + folder + delimiter)
            else:
                keys.append(key)
        contents = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.held[f'{bucket}/{key}'])}</Size>"
            "<LastModified>2026-11-23T00:00:00.000Z</LastModified></Contents>"
            for key in keys
        )
        folders = "".join(
            f"<CommonPrefixes><Prefix>{escape(p)}</Prefix></CommonPrefixes>" for p in sorted(common)
        )
        return (
            '<?xml version="1.0"?><ListBucketResult><IsTruncated>false</IsTruncated>'
            f"<KeyCount>{len(keys)}</KeyCount>{contents}{folders}</ListBucketResult>"
        ).encode()

    def _is_signed(self, path: str, query: str) -> bool:
        found = _SIGNED.fullmatch(self.headers.get("Authorization", ""))
        if found is None or found[1] != KEY:
            return False
        _, day, region, names, signature = found.groups()
        headers = "".join(f"{n}:{self.headers.get(n, '').strip()}\n" for n in names.split(";"))
        pairs = sorted(parse_qs(query, keep_blank_values=True).items())
        asked = "&".join(f"{quote(n, safe='-_.~')}={quote(v[0], safe='-_.~')}" for n, v in pairs)
        body = self.headers.get("x-amz-content-sha256", "")
        request = "\n".join([self.command, path, asked, headers, names, body])
        scope = f"{day}/{region}/s3/aws4_request"
        moment = self.headers.get("x-amz-date", "")
        digest = hashlib.sha256(request.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
        made = f"AWS4{SECRET}".encode()
        for part in (day, region, "s3", "aws4_request", text):
            made = hmac.new(made, part.encode(), hashlib.sha256).digest()
        return hmac.compare_digest(made.hex(), signature)
