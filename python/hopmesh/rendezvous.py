"""How the processes of a run find the job that is theirs."""

from __future__ import annotations

import os
import re
import secrets
import time
import urllib.parse
from collections.abc import Mapping
from typing import Any

from hopmesh.client import Client
from hopmesh.error import Again, Error

_MEET_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_OVER = ("done", "failed", "stopped")


def run_key() -> str | None:
    """Returns the key of the run that started this process; None if none did."""
    key = os.environ.get("HOPMESH_RUN")
    return check_key(key) if key else None


def new_key() -> str:
    """Returns a key that no other run has."""
    return secrets.token_hex(8)


def check_key(key: str) -> str:
    """Returns the key of a run if it is one."""
    if key == "none" or not re.fullmatch(r"[A-Za-z0-9-]{1,56}", key):
        raise Error(f"{key!r} is no key of a run: give up to 56 letters, digits and dashes")
    if re.search(r"--[0-9]+$", key):
        raise Error(
            f"{key!r} is no key of a run: it ends in two dashes and a number, as the jobs of a "
            "run's second and later loaders do; leave out a dash"
        )
    return key


def meet(client: Client, key: str, request: Mapping[str, Any]) -> str:
    """Returns the job whose key it is. The process beside the first live node makes it."""
    deadline = time.monotonic() + _MEET_SECONDS
    made = ""
    while True:
        if found := _jobs(client, key):
            if made and made != found[0]["id"]:
                _end(client, made)  # two nodes took themselves for the first
            if apart(client, found[0]) and all_done(client, key):
                raise Again("its other nodes have done it")
            return _unfinished(found[0], request)
        first = _first(client)
        if not made and first["here"]:
            made = _make(client, request, deadline)
        elif time.monotonic() > deadline:
            raise Error(
                f"no job of run {key} was made: start the script beside {first['name']} too"
            )
        time.sleep(_LOOK_SECONDS)


def make(client: Client, request: Mapping[str, Any]) -> str:
    """Makes a job that only this process takes part in, and returns its id."""
    deadline = time.monotonic() + _MEET_SECONDS
    key = next(one["value"] for one in request["set"] if one["key"] == "program.run")
    while True:
        if made := _make(client, request, deadline):
            return made
        time.sleep(_LOOK_SECONDS)
        if found := _jobs(client, key):
            return str(found[0]["id"])  # its answer was lost


def stop(client: Client, key: str) -> None:
    """Stops the jobs of a run, where its script has failed."""
    for job in _jobs(client, key, prefix=True):
        if job["state"] not in _OVER:
            client.post(f"/v1/jobs/{urllib.parse.quote(job['id'], safe='')}/stop")


def done(client: Client, id: str) -> bool:
    """Reports whether a job is done."""
    path = "/v1/jobs/" + urllib.parse.quote(id, safe="")
    return bool(client.get(path)["state"] == "done")


def next_of(client: Client, key: str) -> str | None:
    """Returns the job of a run that goes on, if there is one."""
    for job in _jobs(client, key, prefix=True):
        if job["state"] not in _OVER:
            return str(job["id"])
    return None


def all_done(client: Client, key: str) -> bool:
    """Reports whether a run has jobs and all of them are done."""
    found = _jobs(client, key, prefix=True)
    return bool(found) and all(job["state"] == "done" for job in found)


def apart(client: Client, job: Mapping[str, Any]) -> bool:
    """Reports whether other nodes have or had a job, without the one here."""
    nodes = job.get("nodes") or []
    return bool(nodes) and client.get("/v1/status")["node"] not in nodes


def _jobs(client: Client, key: str, prefix: bool = False) -> list[dict[str, Any]]:
    """Returns the jobs of a run, the oldest first; with ``prefix`` those of all its loaders."""
    found = []
    for listed in client.get("/v1/jobs"):
        if listed["strategy"] == "program":
            job = client.get("/v1/jobs/" + urllib.parse.quote(listed["id"], safe=""))
            values = job["recipe"]["sharing"].get("values") or {}
            own = values.get("program.run", "")
            if own == key or (prefix and re.fullmatch(re.escape(key) + r"--[0-9]+", own)):
                found.append(job)
    return sorted(found, key=lambda job: (len(job["id"]), job["id"]))


def _first(client: Client) -> dict[str, Any]:
    """Says which live node is the first by its id, and whether it is the one here."""
    live = [m for m in client.get("/v1/members") if m["status"] == "alive"]
    if not live:
        raise Error(f"the daemon at {client.address} knows no live node: look at `hopmesh status`")
    first = min(live, key=lambda m: str(m["id"]))
    return {"name": first["name"], "here": first["name"] == client.get("/v1/status")["node"]}


def _make(client: Client, request: Mapping[str, Any], deadline: float) -> str:
    """Makes the job. While the mesh has no leader it returns "" or the request may be lost."""
    try:
        return str(client.post("/v1/jobs", dict(request))["id"])
    except Error as error:
        if 400 <= error.status < 500 or time.monotonic() > deadline:
            raise
        return ""


def _end(client: Client, id: str) -> None:
    path = "/v1/jobs/" + urllib.parse.quote(id, safe="")
    client.post(path + "/stop")


def _unfinished(job: Mapping[str, Any], request: Mapping[str, Any]) -> str:
    id, state = str(job["id"]), job["state"]
    if state in _OVER and state != "done":
        why = f": {job['error']}" if job["error"] else ""
        raise Error(f"job {id} of this run is {state}{why}")
    if job["dataset"] != request["dataset"]:
        raise Error(
            f"job {id} of this run is on {job['dataset']} and not on {request['dataset']}: "
            "start another run"
        )
    return id
