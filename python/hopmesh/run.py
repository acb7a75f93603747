"""Runs a script beside one daemon: ``python -m hopmesh.run script.py [arguments]``.

Start it beside each node of a mesh, with the same ``--run``.
"""

from __future__ import annotations

import argparse
import sys

from hopmesh import rendezvous, runner
from hopmesh.client import Client, default_address
from hopmesh.error import Error


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m hopmesh.run",
        description="Runs a script beside a daemon, and starts it again from its last checkpoint "
        "when the nodes of its job change.",
    )
    parser.add_argument("--addr", help="the daemon: unix:PATH, or a data directory")
    parser.add_argument(
        "--run", metavar="KEY", help="the same word beside all nodes; needed if there are several"
    )
    parser.add_argument("script")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    try:
        key = rendezvous.check_key(given.run) if given.run else rendezvous.run_key()
        client = Client(given.addr or default_address())
        node = client.get("/v1/status")["node"]
        live = [m["name"] for m in client.get("/v1/members") if m["status"] == "alive"]
        if not key and len(live) > 1:
            raise Error(
                f"the mesh has {len(live)} nodes, and each needs the script beside it: give "
                "--run KEY, the same word on all of them"
            )
        command = [sys.executable, given.script, *given.arguments]
        runner.run({node: client}, key or rendezvous.new_key(), command, _show, {})
    except runner.Failed as error:
        print(f"hopmesh.run: {error}", file=sys.stderr)
        return error.code
    except Error as error:
        print(f"hopmesh.run: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _show(node: str, line: str) -> None:
    print(f"{node}: {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
