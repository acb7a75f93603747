"""Writes small graphs as the raw files of kimiyoung/planetoid, into planetoid/.

The same graph three times: as Python 2 wrote pickles of protocol 0 and 2, and as
Python 3 writes protocol 4. Needs NumPy and SciPy. The test on these files says
what is in them.
"""

import collections
import io
import pathlib
import pickle

import numpy as np
import scipy.sparse

OLD = {
    "numpy._core.multiarray": "numpy.core.multiarray",
    "scipy.sparse._csr": "scipy.sparse.csr",
    "builtins": "__builtin__",
    "copyreg": "copy_reg",
}


class Python2(pickle._Pickler):
    """Writes strings as str of Python 2, and names as they were then."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, s):
        self.save_raw(s.encode("latin-1"), s)

    def save_raw(self, b, key=None):
        if self.proto == 0:
            self.write(b"S" + repr(b)[1:].encode() + b"\n")
        elif len(b) < 256:
            self.write(b"U" + bytes([len(b)]) + b)
        else:
            self.write(b"T" + len(b).to_bytes(4, "little") + b)
        self.memoize(b if key is None else key)

    def save_name(self, obj, name=None):
        name = name or obj.__qualname__
        module = OLD.get(obj.__module__, obj.__module__)
        self.write(b"c" + module.encode() + b"\n" + name.encode() + b"\n")
        self.memoize(obj)

    save_global = save_name
    dispatch[str] = save_text
    dispatch[bytes] = save_raw
    dispatch[type] = save_name
    dispatch[type(len)] = save_name
    dispatch[type(lambda: None)] = save_name


def dump(obj, old, protocol):
    out = io.BytesIO()
    kind = Python2 if old else pickle._Pickler
    kind(out, protocol).dump(obj)
    return out.getvalue()


def write(name, old, protocol):
    # Vertices 0-5 are trained on or known, 8, 6 and 9 tested; 7 is left out.
    test = [8, 6, 9]
    allx = scipy.sparse.csr_matrix(np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0], [0, 0, 0, 0]], dtype=np.float32))
    tx = scipy.sparse.csr_matrix(np.array([[0.5, 0, 0, 0.25], [0, 2, 0, 0], [0, 0, 0, 4]], dtype=np.float32))
    one_hot = np.eye(3, dtype=np.int32)
    ally = one_hot[[0, 1, 2, 0, 1, 2]]
    ally[5] = 0
    ty = one_hot[[2, 1, 0]]
    graph = collections.defaultdict(list)
    for v, neighbours in {0: [1, 2], 1: [0], 2: [0, 8], 3: [3, 4, 4], 4: [3], 5: [], 6: [9], 7: [0], 8: [2], 9: [6]}.items():
        graph[v] = neighbours
    parts = {"x": allx[:2], "y": ally[:2], "tx": tx, "ty": ty, "allx": allx, "ally": ally, "graph": graph}
    folder = pathlib.Path(__file__).parent / "planetoid" / name
    folder.mkdir(parents=True, exist_ok=True)
    for part, obj in parts.items():
        (folder / f"ind.{name}.{part}").write_bytes(dump(obj, old, protocol))
    (folder / f"ind.{name}.test.index").write_text("".join(f"{v}\n" for v in test))


if __name__ == "__main__":
    write("text", True, 0)
    write("python2", True, 2)
    write("python3", False, 4)
