"""Starts the service with a Postgres and a folder of its own, fills in what there is to read, and lets schemathesis
ask it everything. The exit code is schemathesis'."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).parent.absolute()
TILLMARK = "target/debug/tillmark"
SCHEMATHESIS = str(pathlib.Path(sys.executable).absolute().with_name("schemathesis"))
SHORT = ["--max-examples", "20", "--generation-deterministic"]
LONG = ["--max-examples", "150"]


def start(data_dir):
    """The service and where it listens."""
    environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    environment |= {"TILLMARK_DATA_DIR": data_dir, "TILLMARK_LISTEN": "127.0.0.1:0", "TILLMARK_LOG": "warn"}
    service = subprocess.Popen([TILLMARK, "serve"], env=environment, stdout=subprocess.PIPE, text=True)
    for line in service.stdout:
        if "http://" in line:
            return service, "http://" + line.split("http://")[1].split()[0]
    sys.exit(f"the service ended with {service.wait()} before it listened")


def make_key(data_dir):
    """A key for everything: with it, schemathesis also sees who is let in."""
    command = [TILLMARK, "keys", "create", "--name", "schemathesis", "--scope", "admin", "--data-dir", data_dir]
    shown = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return next(line for line in shown.splitlines() if line.startswith("tm_"))


def fill_in(base, key):
    """The days of the examples in the API description, so that reads find something."""
    scene = json.loads((HERE / "scene.json").read_text())
    for method, path, body in scene:
        headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
        request = urllib.request.Request(base + path, json.dumps(body).encode(), headers, method=method)
        urllib.request.urlopen(request, timeout=60).close()


def main():
    arguments = sys.argv[1:]
    length = LONG if "--long" in arguments else SHORT
    arguments = [argument for argument in arguments if argument != "--long"]
    with tempfile.TemporaryDirectory(prefix="tillmark-schemathesis-") as data_dir:
        os.chmod(data_dir, 0o755)
        service, base = start(data_dir)
        try:
            key = make_key(data_dir)
            fill_in(base, key)
            command = [SCHEMATHESIS, "run", f"{base}/openapi.json"]
            environment = os.environ | {"TILLMARK_KEY": key}
            ended = subprocess.run(command + length + arguments, env=environment, cwd=HERE)
        finally:
            service.terminate()
            ended_with = service.wait(60)
    sys.exit(ended.returncode or ended_with)


main()
