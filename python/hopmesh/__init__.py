"""Trains graph neural networks on a mesh of machines.

A mesh in this process's children, for notebooks and tests::

    import hopmesh

    with hopmesh.up(nodes=3) as mesh:
        mesh.import_("cora", "cora.npz")
        job = mesh.train("cora", model="gcn", hidden=16, epochs=100)
        job.wait()
        print(job.best, job.predictions().classes)

:func:`connect` finds a daemon that runs, and :func:`load_model` computes with an exported model.
Nothing but numpy is needed.
"""

from importlib import metadata as _metadata

from hopmesh.batch import Adj, Batch
from hopmesh.binary import options
from hopmesh.dataset import Dataset, Graph
from hopmesh.error import Again, Error, Gone
from hopmesh.evaluation import EvalLoader
from hopmesh.job import Job, Pairs, Predictions
from hopmesh.loader import Loader
from hopmesh.local import LocalMesh, up
from hopmesh.mesh import Mesh, connect
from hopmesh.model import Model, load_model
from hopmesh.tracking import log_to_mlflow

__all__ = [
    "Adj", "Again", "Batch", "Dataset", "Error", "EvalLoader", "Gone", "Graph", "Job", "Loader",
    "LocalMesh", "Mesh", "Model", "Pairs", "Predictions", "connect", "load_model", "log_to_mlflow",
    "options", "up",
]  # fmt: skip

try:
    __version__ = _metadata.version("hopmesh")
except _metadata.PackageNotFoundError:
    __version__ = "0"  # it is used from its folder
