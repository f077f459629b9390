"""Label Studio and doccano, started for the tests that need them: they import, change and export as people do."""

import io
import json
import os
import secrets
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

WAIT = 300  # seconds that a tool may take to start; making its database is most of it
USER, PASSWORD, TOKEN = "ann", "sesam-4711", secrets.token_hex(20)
QUIET = {"SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "", "COLLECT_ANALYTICS": "False", "LATEST_VERSION_CHECK": "False"}


def tool(environment: str, name: str) -> str:
    """The program of a tool; the test is skipped where its environment isn't there."""
    path = ROOT / environment / "bin" / name
    return str(path) if path.is_file() else pytest.skip(f"{environment} isn't there; `make {environment}/.ready`")


class Client:
    """What talks to a tool, as a browser does."""

    def __init__(self, port: int) -> None:
        self.base = f"http://127.0.0.1:{port}"
        self.cookies = CookieJar()
        self.headers = {"Referer": self.base}
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def call(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        headers = {**self.headers, "Content-Type": kind}
        for cookie in self.cookies:
            if cookie.name == "csrftoken":
                headers["X-CSRFToken"] = str(cookie.value)
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, headers, method=method)
        try:
            with self.opener.open(request) as answer:
                content = answer.read()
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:1000]!r}") from error
        try:
            return json.loads(content)
        except ValueError:
            return content

    def wait(self, path: str) -> None:
        for _ in range(WAIT):
            try:
                self.call("GET", path)
                return
            except (OSError, AssertionError):
                time.sleep(1)
        raise AssertionError(f"{self.base} doesn't answer")


@contextmanager
def running(*commands: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Programs that run meanwhile, each with all that it starts."""
    started = []
    try:
        for number, command in enumerate(commands):
            with (folder / f"{number}.log").open("wb") as log:
                started.append(
                    subprocess.Popen(
                        command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
                    )
                )
        yield
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class LabelStudio(Client):
    """Label Studio, with one user."""

    def change(self, made: Path, text: str, exported: Path) -> None:
        """Import an export into a new project, delete the spans of a text, and export the annotations."""
        config = (made / "config.xml").read_text(encoding="utf8")
        project = self.call("POST", "/api/projects/", {"title": "round trip", "label_config": config})["id"]
        kind, body = form("file", "tasks.json", (made / "tasks.json").read_bytes())
        self.call("POST", f"/api/projects/{project}/import", body, kind)
        tasks = self.call("GET", f"/api/tasks?project={project}&fields=all&page_size=1000")["tasks"]
        (task,) = [task for task in tasks if task["data"]["text"] == text]
        for annotation in task["annotations"]:
            self.call("PATCH", f"/api/annotations/{annotation['id']}/", {"result": []})
        if not task["annotations"]:
            self.call("POST", f"/api/tasks/{task['id']}/annotations/", {"result": []})
        exports = self.call("GET", f"/api/projects/{project}/export?exportType=JSON")
        exported.write_text(json.dumps(exports, ensure_ascii=False, indent=1) + "\n", encoding="utf8")


@contextmanager
def run_label_studio(folder: Path) -> Iterator[LabelStudio]:
    program, port = tool(".venv-tools", "label-studio"), free_port()
    command = [program, "start", "--no-browser", "--data-dir", str(folder), "--port", str(port)]
    command += ["--internal-host", "127.0.0.1", "--username", f"{USER}@example.org", "--password", PASSWORD]
    command += ["--user-token", TOKEN, "--enable-legacy-api-token"]
    with running(command, folder=folder, environment={**os.environ, **QUIET}):
        client = LabelStudio(port)
        client.wait("/health")
        client.headers["Authorization"] = f"Token {TOKEN}"
        yield client


class Doccano(Client):
    """doccano, with one user."""

    def change(self, made: Path, text: str, exported: Path) -> None:
        """Import an export into a new project, delete the spans of a text, and export all."""
        settings = {"project_type": "SequenceLabeling", "resourcetype": "SequenceLabelingProject", "tags": []}
        settings |= {"allow_overlapping": True, "collaborative_annotation": True}
        new = self.call("POST", "/v1/projects", {"name": "trip", "description": "-", "guideline": "", **settings})
        project = f"/v1/projects/{new['id']}"
        kind, body = form("filepond", "all.jsonl", (made / "all.jsonl").read_bytes(), ("filepond", "{}"))
        upload = self.call("POST", "/v1/fp/process/", body, kind).decode()
        columns = {"column_data": "text", "column_label": "label", "delimiter": ",", "encoding": "Auto"}
        job = {"format": "JSONL", "task": "SequenceLabeling", "uploadIds": [upload], **columns}
        assert self.done(self.call("POST", f"{project}/upload", job)) == {"error": []}
        examples = self.call("GET", f"{project}/examples?limit=1000")["results"]
        (example,) = [example["id"] for example in examples if example["text"] == text]
        for span in self.call("GET", f"{project}/examples/{example}/spans"):
            self.call("DELETE", f"{project}/examples/{example}/spans/{span['id']}")
        job = self.call("POST", f"{project}/download", {"format": "JSONL", "exportApproved": False})
        self.done(job)
        with zipfile.ZipFile(io.BytesIO(self.call("GET", f"{project}/download?taskId={job['task_id']}"))) as file:
            exported.write_bytes(file.read("all.jsonl"))

    def done(self, job: dict) -> Any:
        """What a job has as its result, once it is done."""
        for _ in range(WAIT):
            status = self.call("GET", f"/v1/tasks/status/{job['task_id']}")
            if status["ready"]:
                return status["result"]
            time.sleep(1)
        raise AssertionError("doccano doesn't finish")


@contextmanager
def run_doccano(folder: Path) -> Iterator[Doccano]:
    program, port = tool(".venv-doccano", "doccano"), free_port()
    environment = {**os.environ, "DOCCANO_HOME": str(folder)}
    for command in (["init"], ["createuser", "--username", USER, "--password", PASSWORD]):
        subprocess.run([program, *command], env=environment, check=True, capture_output=True)
    web = [program, "webserver", "--port", str(port), "--workers", "1"]
    with running(web, [program, "task", "--concurrency", "1"], folder=folder, environment=environment):
        client = Doccano(port)
        client.wait("/")
        client.call("POST", "/v1/auth/login/", {"username": USER, "password": PASSWORD})
        yield client


def form(field: str, name: str, content: bytes, *values: tuple[str, str]) -> tuple[str, bytes]:
    """A file, and other values, as a browser sends them: the kind and the body."""
    edge = secrets.token_hex(16)
    parts = [f'Content-Disposition: form-data; name="{key}"\r\n\r\n{value}'.encode() for key, value in values]
    head = f'Content-Disposition: form-data; name="{field}"; filename="{name}"\r\nContent-Type: application/json'
    parts.append(head.encode() + b"\r\n\r\n" + content)
    body = b"".join(f"--{edge}\r\n".encode() + part + b"\r\n" for part in parts) + f"--{edge}--\r\n".encode()
    return f"multipart/form-data; boundary={edge}", body
