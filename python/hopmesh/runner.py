"""Keeps a script running beside daemons until its job is done."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from hopmesh import leash, rendezvous
from hopmesh.client import Client
from hopmesh.error import AGAIN, GONE, Error

_LOOK_SECONDS = 0.5
_END_SECONDS = 5.0
# A daemon that ends well leaves its script before it stops to listen.
_GRACE_SECONDS = 3.0
# A script that ends soon after each start waits longer each time.
_SHORTEST_REST, _LONGEST_REST, _STEADY_SECONDS = 0.5, 30.0, 60.0
_LONGEST_LINE = 1 << 16
Show = Callable[[str, str], None]


def run(
    nodes: Mapping[str, Client],
    key: str,
    command: Sequence[str],
    show: Show,
    environment: Mapping[str, str],
    later: Callable[[], Mapping[str, Client]] = dict,
) -> None:
    """Runs a command beside each node, and returns when all have ended well.

    One that ends by Again is started again. One whose daemon is gone is ended, and counts only if
    no other is left. If another fails, all are ended, the job is stopped, and it raises Failed.

    ``later`` returns the nodes of which others may join or come back while the command runs. It is
    started beside those that know the job of the run, too.
    """
    beside = [_Beside(name, client, key, command, environment) for name, client in nodes.items()]
    ended_well = False
    try:
        with selectors.DefaultSelector() as selector:
            for one in beside:
                one.start(selector)
            running, looked = list(beside), time.monotonic()
            while running:
                _read(selector, show)
                if time.monotonic() - looked > _LOOK_SECONDS:
                    there = {one.node for one in running}
                    for name, client in later().items():
                        if name not in there and not ended_well and _goes_on(client, key):
                            show(name, "starts too, from the last checkpoint")
                            beside.append(_Beside(name, client, key, command, environment))
                            beside[-1].start(selector)
                            running.append(beside[-1])
                    looked = time.monotonic()
                for one in list(running):
                    code = one.look(selector, show)
                    if code is None:
                        continue
                    if code == AGAIN or (code == GONE and alive(one.client)):
                        show(one.node, "starts again from the last checkpoint")
                        one.rest()
                        continue
                    running.remove(one)
                    if code == 0:
                        ended_well = True
                    elif code != GONE:
                        raise one.failure(code)
                    else:
                        show(one.node, "its daemon is gone")
        if not ended_well:
            raise Error("the daemons are gone, and with them the run")
    except BaseException:
        _stop((one.client for one in beside), key)
        raise
    finally:
        for one in beside:
            one.end()


class Failed(Error):
    """The script ended with an exit code that is not 0."""

    def __init__(self, node: str, code: int, last: str) -> None:
        how = f"with exit code {code}" if code >= 0 else f"by signal {-code}"
        super().__init__(f"the script beside {node} ended {how}{': ' + last if last else ''}")
        self.code = code if code >= 0 else 128 - code


class _Beside:
    """The script beside one daemon."""

    def __init__(
        self,
        node: str,
        client: Client,
        key: str,
        command: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        self.node, self.client, self._key = node, client, key
        self._command = [sys.executable, "-I", leash.__file__, str(os.getpid()), *command]
        self._environment = {**os.environ, **imports(), **environment, "PYTHONUNBUFFERED": "1"}
        self._environment |= {"HOPMESH_API": client.address, "HOPMESH_RUN": key}
        self._process: subprocess.Popen[bytes] | None = None
        self._rest, self._last, self._looked = b"", "", 0.0
        self._ended = 0.0
        self._begun, self._rests_until, self._rests = 0.0, 0.0, 0.0

    def start(self, selector: selectors.BaseSelector) -> None:
        """Starts the script, whose output the selector waits for."""
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
        )
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)
        selector.register(self._process.stdout, selectors.EVENT_READ, self)
        self._looked = self._begun = time.monotonic()

    def rest(self) -> None:
        """Has the script started again by look, after a while."""
        now = time.monotonic()
        steady = now - self._begun >= _STEADY_SECONDS
        self._rests = min(max(_SHORTEST_REST, 0 if steady else 2 * self._rests), _LONGEST_REST)
        self._process, self._rests_until = None, now + self._rests

    def read(self, selector: selectors.BaseSelector, show: Show) -> bool:
        """Shows the lines that came, and reports whether there may be more."""
        assert self._process is not None and self._process.stdout is not None
        output = self._process.stdout
        if output.closed:
            return False
        try:
            piece = os.read(output.fileno(), _LONGEST_LINE)
        except BlockingIOError:
            return False
        *lines, self._rest = (self._rest + piece).split(b"\n")
        if len(self._rest) > _LONGEST_LINE:
            lines, self._rest = [*lines, self._rest], b""
        for line in lines:
            self._show(line, show)
        if not piece:
            self._close(selector, show)
        return bool(piece)

    def look(self, selector: selectors.BaseSelector, show: Show) -> int | None:
        """Returns how the script has ended, if it has or must: by its code, or GONE."""
        now = time.monotonic()
        if self._process is None:
            if not alive(self.client):
                return GONE
            if now >= self._rests_until:
                if self._done():
                    return 0
                self.start(selector)
            return None
        code = self._process.poll()
        if code is None:
            self._ended = now
            if now - self._looked < _LOOK_SECONDS:
                return None
            self._looked = now
            if alive(self.client):
                return None
            self.end()
            while self.read(selector, show):
                pass
            self._close(selector, show)
            return GONE  # it has not failed, even if the daemon is back by now
        while self.read(selector, show):
            pass
        self._close(selector, show)  # what the script has started may hold it open
        if code == 0 or (code == AGAIN and self._done()):
            return 0
        if not alive(self.client):
            return GONE
        if code != AGAIN and now - self._ended < _GRACE_SECONDS:
            return None
        return code

    def failure(self, code: int) -> Failed:
        """Returns the error of a script that has failed."""
        return Failed(self.node, code, self._last)

    def end(self) -> None:
        """Ends the script if it runs."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _close(self, selector: selectors.BaseSelector, show: Show) -> None:
        assert self._process is not None and self._process.stdout is not None
        if self._process.stdout.closed:
            return
        if self._rest:
            self._show(self._rest, show)
            self._rest = b""
        selector.unregister(self._process.stdout)
        self._process.stdout.close()

    def _show(self, line: bytes, show: Show) -> None:
        text = line.decode(errors="replace").rstrip("\r")
        self._last = text.strip() or self._last
        show(self.node, text)

    def _done(self) -> bool:
        with contextlib.suppress(Error):
            return rendezvous.all_done(self.client, self._key)
        return False


def imports() -> dict[str, str]:
    """Returns what has a script find this package where it is used from its folder."""
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if os.path.basename(folder) in ("site-packages", "dist-packages"):
        return {}
    before = os.environ.get("PYTHONPATH")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else folder}


def alive(client: Client) -> bool:
    """Reports whether a daemon listens on its unix socket."""
    path = client.socket
    if path is None:
        raise Error("a script runs beside a daemon on this machine: give its unix socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_LOOK_SECONDS)
        try:
            probe.connect(path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:
            pass  # it is busy
    return True


def _goes_on(client: Client, key: str) -> bool:
    """Reports whether a node is ready, and knows a job of the run that is not over."""
    with contextlib.suppress(Error):
        if alive(client) and client.get("/v1/status")["ready"]:
            return rendezvous.next_of(client, key) is not None
    return False


def _read(selector: selectors.BaseSelector, show: Show) -> None:
    if not selector.get_map():
        time.sleep(_LOOK_SECONDS / 10)
        return
    for key, _ in selector.select(_LOOK_SECONDS / 2):
        key.data.read(selector, show)


def _stop(clients: Iterable[Client], key: str) -> None:
    """Has the job stopped by the first daemon that answers, as others wait for its sums."""
    for client in clients:
        with contextlib.suppress(Error):
            rendezvous.stop(client, key)
            return
