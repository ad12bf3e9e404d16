"""Drives a headless Chromium through the DevTools protocol over two pipes: standard library only."""

import base64
import json
import os
import select
import subprocess
import tempfile
import time


class Browser:
    def __init__(self, program):
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def give_pipes():  # the protocol's file descriptors are 3 and 4
            os.dup2(os.dup(to_browser), 3)
            os.dup2(os.dup(from_browser), 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        self._profile = tempfile.TemporaryDirectory(prefix="rowtune-browser-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir=" + self._profile.name, "about:blank"],
            preexec_fn=give_pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._next = 0
        self._session = None
        self.events = []
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def close(self):
        os.close(self._write)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        self._profile.cleanup()

    def _message(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, deadline - time.monotonic()))
            part = os.read(self._read, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, timeout=120, **params):
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + timeout
        while True:
            answer = self._message(deadline)
            if answer.get("id") != self._next:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def wait_for(self, method, timeout=120):
        deadline = time.monotonic() + timeout
        while not any(e.get("method") == method for e in self.events):
            self.events.append(self._message(deadline))

    def open(self, url, width=1280, height=900, scheme="light", media=""):
        """Loads a page and waits for its load event and two frames."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setEmulatedMedia", media=media, features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.call("Page.navigate", url=url)
        self.wait_for("Page.loadEventFired")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def run(self, script):
        """The value of an expression, awaited."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def complaints(self):
        """Errors and warnings on the console, uncaught exceptions, failed or forbidden requests."""
        said = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                details = params["exceptionDetails"]
                said.append(details.get("exception", {}).get("description", details["text"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
                said.append(f"console.{params['type']}: {params['args']}")
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                said.append(params["entry"]["text"])
        return said

    def task_seconds(self):
        """What the page's main thread has worked; after Performance.enable."""
        metrics = self.call("Performance.getMetrics")["metrics"]
        return next(m["value"] for m in metrics if m["name"] == "TaskDuration")

    def requests(self):
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def pdf(self):
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])


def main():
    """browser.py PAGE.html PICTURE.png [WIDTH HEIGHT [SCALE]]: a picture of the top of a page."""
    import pathlib
    import shutil
    import sys

    page, picture = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    width, height = (int(sys.argv[3]), int(sys.argv[4])) if len(sys.argv) > 4 else (1200, 900)
    scale = float(sys.argv[5]) if len(sys.argv) > 5 else 1.0
    browser = Browser(shutil.which("chromium") or "chromium-browser")
    browser.open(page.as_uri(), width=width, height=height)
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}
    data = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"]
    pathlib.Path(picture).write_bytes(base64.b64decode(data))
    browser.close()


if __name__ == "__main__":
    main()
