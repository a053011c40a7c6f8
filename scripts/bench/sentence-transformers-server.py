"""Owns a server of the OpenAI kind over sentence-transformers, to compare with: `python … MODEL_FOLDER PORT`.

The library has no server of its own. One call of `encode` at a time with all cores, as its users would have it; what
waits meanwhile is put together, up to 32 texts, so that it is not slowed by being asked singly.
"""

import json
import queue
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from sentence_transformers import SentenceTransformer

MAX_TEXTS = 32
model = SentenceTransformer(sys.argv[1], device="cpu")
waiting: "queue.Queue[tuple[list[str], list, threading.Event]]" = queue.Queue()


def encode_for_ever() -> None:
    while True:
        jobs = [waiting.get()]
        while sum(len(texts) for texts, _, _ in jobs) < MAX_TEXTS:
            try:
                jobs.append(waiting.get_nowait())
            except queue.Empty:
                break
        vectors = model.encode([text for texts, _, _ in jobs for text in texts], batch_size=MAX_TEXTS)
        start = 0
        for texts, answer, done in jobs:
            answer.extend(vectors[start : start + len(texts)].tolist())
            start += len(texts)
            done.set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        pass

    def reply(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.reply({"object": "list", "data": [{"id": "model", "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = asked["input"] if isinstance(asked["input"], list) else [asked["input"]]
        answer: list = []
        done = threading.Event()
        waiting.put((texts, answer, done))
        done.wait()
        data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(answer)]
        self.reply({"object": "list", "data": data, "model": "model", "usage": {"prompt_tokens": 0, "total_tokens": 0}})


threading.Thread(target=encode_for_ever, daemon=True).start()
print(f"listening on 127.0.0.1:{sys.argv[2]}", flush=True)
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
