"""Debian's chromium, without a screen, by chromedriver's own protocol (W3C WebDriver): nothing to
install from elsewhere."""
import base64
import json
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

QUIET = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--hide-scrollbars", "--lang=en-US", "--enable-precise-memory-info"]


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Browser:
    def __enter__(self):
        self.profile = tempfile.mkdtemp(prefix="tutti-browser-")
        self.port = free_port()
        self.driver = subprocess.Popen(["chromedriver", f"--port={self.port}"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            try:
                self._call("GET", "/status")
                break
            except OSError:
                time.sleep(0.1)
        options = {"binary": shutil.which("chromium"), "args": [*QUIET, f"--user-data-dir={self.profile}"]}
        wanted = {"browserName": "chrome", "goog:chromeOptions": options,
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self.session = self._call("POST", "/session",
                                  {"capabilities": {"alwaysMatch": wanted}})["sessionId"]
        self._post("/url", url="about:blank")
        time.sleep(0.5)
        self.requests()  # of the browser's own first page
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", f"/session/{self.session}")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)

    def _call(self, method, path, body=None):
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}", method=method,
            data=json.dumps(body).encode() if body is not None else None,
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=180) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as refusal:
            raise AssertionError(refusal.read().decode()[:1000]) from None

    def _post(self, path, **body):
        return self._call("POST", f"/session/{self.session}{path}", body)

    def command(self, name, **parameters):
        return self._post("/goog/cdp/execute", cmd=name, params=parameters)

    def run(self, script, *arguments):
        return self._post("/execute/sync", script=script, args=list(arguments))

    def screen(self, width, height=900, dark=False):
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=width < 600)
        self.command("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, address):
        """Seconds until the page has drawn itself."""
        begin = time.monotonic()
        self._post("/url", url=address)
        self.wait_for("return document.documentElement.dataset.ready === '1'")
        return time.monotonic() - begin

    def wait_for(self, script, seconds=20):
        end = time.monotonic() + seconds
        while not self.run(script):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {script}")
            time.sleep(0.1)

    def press(self, key, modifiers=0):
        for kind in "keyDown", "keyUp":
            self.command("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
                         text=key if len(key) == 1 and kind == "keyDown" else "")

    def picture(self, path):
        height = self.run("return document.documentElement.scrollHeight")
        width = self.run("return window.innerWidth")
        self.command("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=width < 600)
        time.sleep(0.4)
        shot = self.command("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """What stands in the console since the last call."""
        return [entry["message"] for entry in self._post("/se/log", type="browser")]

    def requests(self):
        """What the page has asked for since the last call."""
        found = []
        for entry in self._post("/se/log", type="performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def megabytes(self):
        self.command("HeapProfiler.collectGarbage")
        return self.run("return performance.memory.usedJSHeapSize") / 1e6
