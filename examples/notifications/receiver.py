"""Receives notifications on 127.0.0.1, verifies them, and prints a line for each: receiver.py SIGNING-KEYS [PORT]"""

import json
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from standardwebhooks import Webhook, WebhookVerificationError

KEYS = [Webhook(line) for line in Path(sys.argv[1]).read_text().split()]
SEEN = set()


def is_ours(body, headers):
    """Whether one of the keys has signed this, within the last five minutes."""
    for key in KEYS:
        try:
            key.verify(body, headers)
            return True
        except WebhookVerificationError:
            pass
    return False


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if not is_ours(body, dict(self.headers)):
            self.send_error(401, "no key of ours has signed this")
            return
        event = json.loads(body)
        self.send_response(204)
        self.end_headers()
        # An answer that is lost on its way has it sent again, with the same id.
        if event["id"] not in SEEN:
            SEEN.add(event["id"])
            print(event["type"], event["source"], event["data"]["message"], flush=True)

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[2]) if len(sys.argv) > 2 else 9000), Receiver)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
