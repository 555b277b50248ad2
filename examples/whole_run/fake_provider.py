"""Stands in for EC2: tells a command's processes that their machine will go, and takes it away.

python fake_provider.py COMMAND ...
"""

import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

NOTICE = b'{"action": "terminate", "time": "2026-11-23T08:22:00Z"}'


class Metadata(BaseHTTPRequestHandler):
    """EC2's metadata service: a token for PUT, after half a second the notice for GET."""

    def do_PUT(self) -> None:
        self.say(b"a-token")

    def do_GET(self) -> None:
        time.sleep(0.5)
        self.say(NOTICE)

    def say(self, text: bytes) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        pass


server = HTTPServer(("127.0.0.1", 0), Metadata)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
machine = subprocess.Popen(sys.argv[1:], start_new_session=True)
safe = Path(os.environ["CHECKPOINT_DIR"], "progress")  # above 0 when a checkpoint is complete
while machine.poll() is None and not (safe.exists() and float(safe.read_text() or 0.0)):
    time.sleep(0.01)  # a real one waits for two minutes
for path in Path("/proc").glob("[0-9]*"):
    if path.exists() and os.getsid(int(path.name)) == machine.pid:
        os.kill(int(path.name), signal.SIGKILL)
sys.exit(128 + signal.SIGKILL if machine.wait() else 0)
