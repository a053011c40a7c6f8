"""Owns asking trivec for vectors: over HTTP from one of several servers, or from an engine of one's own over stdio.

Only the standard library and NumPy. What RCP lets a client repeat is repeated, for `patience_s` at most.
"""

import base64
import http.client
import itertools
import json
import random
import subprocess
import threading
import time
from urllib.parse import urlsplit

import numpy as np

# A server answers within its --deadline-ms (25 s) or says that it could not.
ANSWER_TIMEOUT_S = 60
FIRST_WAIT_S = 0.1
LONGEST_WAIT_S = 10
OVERLOADED = -32011


class CallError(Exception):
    """An answer that no repetition can change."""


class Unanswered(Exception):
    """No answer, or one that allows another attempt; `wait_s` where the server says when."""

    def __init__(self, message, wait_s=None, is_overload=False):
        super().__init__(message)
        self.wait_s = wait_s
        self.is_overload = is_overload


class HttpTransport:
    """One server; each thread keeps a connection of its own."""

    def __init__(self, url, api_key=None):
        parts = urlsplit(url)
        self.url = url
        self._is_tls = parts.scheme == "https"
        self._address = parts.netloc
        self._path = parts.path.rstrip("/")
        self._headers = {"content-type": "application/json"}
        if api_key:
            self._headers["authorization"] = f"Bearer {api_key}"
        self._local = threading.local()
        self._ids = itertools.count(1)

    def call(self, method, params):
        body = json.dumps({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        try:
            connection = self._connection()
            connection.request("POST", f"{self._path}/rcp/{method}", body, self._headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._forget()
            raise Unanswered(f"{self.url}: {error!r}") from error
        if answer.status in (502, 503, 504):
            raise Unanswered(f"{self.url}: HTTP {answer.status}", float(answer.headers.get("retry-after") or 1))
        if answer.status not in (200, 401):
            raise CallError(f"{self.url}: HTTP {answer.status}")
        return result_of(json.loads(text), self.url)

    def _connection(self):
        connection = getattr(self._local, "connection", None)
        if connection is None:
            kind = http.client.HTTPSConnection if self._is_tls else http.client.HTTPConnection
            connection = self._local.connection = kind(self._address, timeout=ANSWER_TIMEOUT_S)
        return connection

    def _forget(self):
        connection, self._local.connection = getattr(self._local, "connection", None), None
        if connection is not None:
            connection.close()

    def close(self):
        self._forget()


class StdioTransport:
    """An engine as a child process, one JSON text a line; started again where it has ended."""

    def __init__(self, command):
        self.url = command[0]
        self._command = command
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._child = None

    def call(self, method, params):
        with self._lock:
            if self._child is None or self._child.has_ended:
                self._child = _Child(self._command)
            child = self._child
        frame = {"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params}
        return result_of(child.ask(frame).wait(ANSWER_TIMEOUT_S), self.url)

    def close(self):
        with self._lock:
            if self._child is not None:
                self._child.close()


class _Child:
    def __init__(self, command):
        self.has_ended = False
        self._waiting = {}
        self._state = threading.Lock()
        self._pen = threading.Lock()
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=self._read, daemon=True).start()
        hello = {"protocolVersion": 1, "client": {"name": "embed_parquet", "version": "1"}, "capabilities": {}}
        self.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})

    def ask(self, frame):
        reply = _Reply()
        with self._state:
            if self.has_ended:
                raise Unanswered("the engine has ended")
            self._waiting[frame["id"]] = reply
        try:
            with self._pen:
                self._process.stdin.write(json.dumps(frame).encode() + b"\n")
                self._process.stdin.flush()
        except (OSError, ValueError):
            pass  # The reader meets the same end, and tells everyone who waits.
        return reply

    def _read(self):
        for line in self._process.stdout:
            frame = json.loads(line)
            reply = self._waiting.pop(frame.get("id"), None)
            if reply is not None:
                reply.give(frame)
        code = self._process.wait()
        with self._state:
            self.has_ended = True
        for reply in list(self._waiting.values()):
            reply.give(Unanswered(f"the engine ended with exit code {code}"))

    def close(self):
        # The end of its input lets the engine finish and end by itself.
        self._process.stdin.close()
        try:
            self._process.wait(ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()


class _Reply:
    def __init__(self):
        self._event = threading.Event()
        self._value = None

    def give(self, value):
        self._value = value
        self._event.set()

    def wait(self, timeout_s):
        if not self._event.wait(timeout_s):
            raise Unanswered(f"no answer within {timeout_s} s")
        if isinstance(self._value, Exception):
            raise self._value
        return self._value


def result_of(frame, where):
    """The result of an answer; an error that may be repeated is `Unanswered`, any other `CallError`."""
    error = frame.get("error")
    if error is None:
        return frame["result"]
    data = error.get("data") or {}
    message = f"{where}: {error['code']} {error['message']}"
    if not data.get("retryable"):
        raise CallError(message)
    wait_ms = data.get("retryAfterMs")
    raise Unanswered(message, None if wait_ms is None else wait_ms / 1000, error["code"] == OVERLOADED)


class Client:
    """Vectors from whichever transport answers; every method of trivec only computes, so any call may be repeated."""

    def __init__(self, transports, first=0, patience_s=600, sleep=time.sleep):
        self._transports = transports
        self._turns = itertools.count(first)
        self._patience_s = patience_s
        self._sleep = sleep

    def call(self, method, params):
        """The result of one call, after as many attempts as `patience_s` allows."""
        end = time.monotonic() + self._patience_s
        wait_s = FIRST_WAIT_S
        for attempt in itertools.count(1):
            transport = self._transports[next(self._turns) % len(self._transports)]
            try:
                return transport.call(method, params)
            except Unanswered as unanswered:
                if time.monotonic() > end:
                    raise CallError(f"given up after {self._patience_s} s: {unanswered}") from unanswered
                # Another server may be free or alive: each is asked once before the first wait.
                if attempt % len(self._transports) != 0 and not unanswered.is_overload:
                    continue
                # What the server says, and a little of one's own: callers that were refused together come back apart.
                told_s = unanswered.wait_s
                self._sleep((wait_s if told_s is None else told_s) * random.uniform(1, 1.25))
                wait_s = min(LONGEST_WAIT_S, wait_s * 2)

    def embed(self, texts, kind):
        """float32 [texts, dimension]"""
        params = {"inputs": texts, "kind": kind, "encoding": "f32-base64", "x-trivec": {"priority": "bulk"}}
        vectors = self.call("embed", params)["vectors"]
        return np.stack([np.frombuffer(base64.b64decode(vector), dtype="<f4") for vector in vectors])

    def identity(self):
        """The model as the servers name it: vectors of two identities do not belong into one index."""
        found = {}
        for transport in self._transports:
            try:
                found[transport.url] = _identity_in(transport.call("info", {}))
            except Unanswered:
                continue  # A server that is down now need not stop the run.
        if len(set(found.values())) > 1:
            raise CallError(f"the servers serve different models: {found}")
        return next(iter(found.values())) if found else _identity_in(self.call("info", {}))

    def close(self):
        for transport in self._transports:
            transport.close()


def _identity_in(info):
    return info["capabilities"]["embed"]["identity"]
