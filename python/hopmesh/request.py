"""Turns keyword arguments into the requests of the API."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hopmesh.error import Error

# The fields of a request to train that are no settings. A test compares them with the flags of
# the program.
FIELDS = (
    "model", "layers", "hidden", "heads", "dropout", "norm", "residual", "optimizer", "lr",
    "weight_decay", "epochs", "batch", "fanout", "normalize_features", "patience", "eval_every",
    "split", "seed", "strategy", "deterministic", "task", "edge_split", "loss", "from",
)  # fmt: skip
# Flags of the program that are settings of another name in a request.
FLAGS = {
    "class_weights": "train.class_weights",
    "decoder": "link.decoder",
    "negatives": "link.negatives",
}
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {unit + "i": 1 << 10 * i for i, unit in enumerate(("K", "M", "G", "T"), 1)}


def train_request(dataset: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the request for a job. None stands for the usual value."""
    request: dict[str, Any] = {"dataset": dataset}
    settings: list[dict[str, str]] = []
    for name, value in given.items():
        if value is None:
            continue
        if name == "sweep":
            request["sweep"] = [
                {"key": _key(key), "values": [_text(v, key == "residual") for v in values]}
                for key, values in value.items()
            ]
        elif name in ("from", "from_"):  # a job, or its id
            request["from"] = getattr(value, "id", value)
        elif name == "settings":
            settings += [{"key": key, "value": _text(v)} for key, v in value.items()]
        elif name == "relation_fanout":
            request[name] = {relation: _whole(hops) for relation, hops in value.items()}
        elif name not in FIELDS:
            settings.append({"key": _key(name), "value": _text(value)})
        elif (name, value) == ("batch", "full"):
            request[name] = 0
        elif name == "fanout":
            if value != "full":
                request[name] = [int(value)] if isinstance(value, int) else _whole(value)
        elif name == "edge_split":
            request[name] = _shares(value)
        else:
            request[name] = value
    if settings:
        request["set"] = settings
    return request


def sizes(request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what was given, with the size of memory in bytes."""
    kept = {key: value for key, value in request.items() if value is not None}
    if isinstance(kept.get("memory"), str):
        kept["memory"] = _bytes(kept["memory"])
    return kept


def _whole(value: Any) -> list[int]:
    parts = value.split(",") if isinstance(value, str) else value
    try:
        return [int(part) for part in parts]
    except (ValueError, TypeError):
        raise Error(f"fanout is {value!r}: give a list such as [25, 10], or 'full'") from None


def _shares(value: Any) -> list[float]:
    parts = value.split(",") if isinstance(value, str) else value
    try:
        return [float(part) for part in parts]
    except (ValueError, TypeError):
        raise Error(
            f"edge_split is {value!r}: give three shares, such as [0.85, 0.05, 0.1]"
        ) from None


def _bytes(size: str) -> int:
    match = re.fullmatch(r"([0-9.]+) ?([KMGT]?i?)B?", size)
    if not match or match[2] not in _UNITS:
        raise Error(f"memory is {size!r}: give bytes, or a size such as '8GiB'")
    return int(float(match[1]) * _UNITS[match[2]])


def _key(name: str) -> str:
    """Returns the key of a setting, or the flag, that an argument stands for."""
    if name in FIELDS:
        return name.replace("_", "-")
    if name in FLAGS:
        return FLAGS[name]
    return name if "." in name else name.replace("_", ".", 1)


def _text(value: Any, flag: bool = False) -> str:
    """Returns a value as it is typed. Settings are on or off, and flags true or false."""
    if hasattr(value, "tolist"):  # an array or a tensor
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return ",".join(_text(part) for part in value)
    if isinstance(value, bool):
        return ("true" if value else "false") if flag else ("on" if value else "off")
    return str(value)
