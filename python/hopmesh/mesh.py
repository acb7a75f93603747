"""A mesh, as one of its daemons sees it."""

from __future__ import annotations

import os
import tempfile
import urllib.parse
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

from hopmesh import known, rendezvous, typed
from hopmesh import source as sources
from hopmesh.client import Client, default_address
from hopmesh.dataset import Dataset, Graph
from hopmesh.error import Error, end_in_a_sentence
from hopmesh.evaluation import EvalLoader
from hopmesh.job import Job
from hopmesh.loader import Loader
from hopmesh.part import Part
from hopmesh.request import sizes, train_request
from hopmesh.tracking import log_to_mlflow


class Mesh:
    """A mesh of machines, seen from one node. :func:`hopmesh.connect` makes one."""

    def __init__(self, client: Client) -> None:
        self._client = client
        # Where shards may lie on this machine.
        self._folders = [os.path.dirname(client.socket)] if client.socket else []
        self._part = Part(client)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self.address}>"

    @property
    def address(self) -> str:
        """The address of the daemon, as ``hopmesh --addr`` takes it."""
        return self._client.address

    def members(self) -> list[dict[str, Any]]:
        """Lists the nodes."""
        members: list[dict[str, Any]] = self._client.get("/v1/members")
        return members

    def status(self) -> dict[str, Any]:
        """Says whether all is well; ``problems`` are sentences that say what to do."""
        status: dict[str, Any] = self._client.get("/v1/status")
        return status

    @property
    def datasets(self) -> dict[str, Dataset]:
        """The datasets by name."""
        listed = self._client.get("/v1/datasets")
        return {about["name"]: Dataset(self._client, self._folders, about) for about in listed}

    def dataset(self, name: str) -> Dataset:
        """Returns one dataset."""
        about = self._client.get("/v1/datasets/" + urllib.parse.quote(name, safe=""))
        return Dataset(self._client, self._folders, about)

    def load_dataset(self, name: str, split: int = 0) -> Graph:
        """Reads a dataset into arrays: see :meth:`Dataset.load`."""
        return self.dataset(name).load(split)

    def import_(
        self,
        name: str,
        source: Any = None,
        *,
        vertices: Any = None,
        format: str | None = None,
        shards: int | None = None,
        partitioner: str | None = None,
        dtype: str | None = None,
        replicas: int | None = None,
        memory: int | str | None = None,
        undirected: bool = False,
        seed: int | None = None,
        task: str | None = None,
        label_columns: Sequence[str] | None = None,
        edge_features: Sequence[str] | str | None = None,
        type_column: str | None = None,
        relation_column: str | None = None,
        **arrays: Any,
    ) -> Dataset:
        """Imports a graph, and returns it when the mesh has it.

        ``source`` is a path on the daemon's machine, or a list of paths, of which each may be
        ``NODE:/PATH``, or an address (https, s3, gs); a PyG ``Data`` or ``HeteroData``; a DGL
        graph with types; or a pandas DataFrame of edges, with ``vertices`` as another of ids,
        features, ``label`` and ``split``. Instead of it, arrays may be given:
        ``edge_index``, and also ``x``, ``y``, ``train_mask``, ``val_mask``, ``test_mask``,
        ``edge_weight`` and ``num_nodes``. A ``y`` with several columns holds several labels of
        a vertex, or numbers to predict: ``task`` says which if it can be both. So do several
        ``label_columns`` of ``vertices`` or of tables in files. ``edge_features="all"`` keeps the
        features of edges: ``edge_attr``, or the further columns of a table of edges, of which it
        may also name some. ``type_column`` names the column of ``vertices`` that says the type of
        each, and ``relation_column`` that of the edges that says the relation: in tables in
        files, columns that are called so are found without. Without any of them, the names
        ``ogbn-arxiv`` and ``ogbn-products`` have the daemon fetch these graphs. The other
        arguments are the flags of ``hopmesh dataset import``.

        What lies in memory is written into a temporary file, which the daemon reads. So the
        daemon must be on this machine: files can't be sent to one elsewhere yet.
        """
        described = edge_features is not None
        asked = [edge_features] if isinstance(edge_features, str) else list(edge_features or [])
        options = sizes(
            {
                "name": name,
                "format": format,
                "shards": shards,
                "partitioner": partitioner,
                "dtype": dtype,
                "replicas": replicas,
                "memory": memory,
                "undirected": undirected or None,
                "seed": seed,
                "task": task,
                "label_columns": list(label_columns) if label_columns is not None else None,
                "edge_features": asked or None,
                "type_column": type_column,
                "relation_column": relation_column,
            }
        )
        if source is None and not arrays and (at := known.address(name)):
            try:
                return self._import({"undirected": True, **options}, [at])
            except Error as error:
                raise Error(known.bring(name, error), error.status) from None
        if source is not None and arrays:
            raise Error(f"give a source or arrays, and not both: {', '.join(sorted(arrays))}")
        if vertices is not None and not sources.is_frame(source):
            raise Error("vertices go with a DataFrame of edges: give the edges as one, too")
        if isinstance(source, (str, os.PathLike)):
            return self._import(options, [source])
        if isinstance(source, (list, tuple)):
            return self._import(options, source)
        if self._client.elsewhere:
            raise Error(
                "a graph in memory goes through a file that the daemon reads, so the daemon must "
                "be on this machine: write it with np.savez, copy it there, and give its path"
            )
        with tempfile.TemporaryDirectory(prefix="hopmesh-import-") as folder:
            if sources.is_frame(source):
                path = sources.write_frames(
                    folder,
                    source,
                    vertices,
                    label_columns,
                    edge_features,
                    type_column,
                    relation_column,
                )
            elif isinstance(source, Mapping):
                path = sources.write_arrays(folder, source, described)
            elif typed.is_typed(source):
                path = typed.write(folder, source)
            elif source is not None:
                path = sources.write_arrays(folder, sources.from_data(source, described), described)
            else:
                path = sources.write_arrays(folder, arrays, described)
            return self._import(options, [path])

    def generate(
        self,
        name: str,
        *,
        kind: str | None = None,
        vertices: int | None = None,
        edges: int | None = None,
        features: int | None = None,
        classes: int | None = None,
        communities: int | None = None,
        inside: float | None = None,
        homophily: float | None = None,
        preset: str | None = None,
        scale: float | None = None,
        shards: int | None = None,
        partitioner: str | None = None,
        dtype: str | None = None,
        replicas: int | None = None,
        memory: int | str | None = None,
        undirected: bool = False,
        seed: int | None = None,
    ) -> Dataset:
        """Makes a graph up; the arguments are the flags of ``hopmesh dataset generate``."""
        request = {key: value for key, value in locals().items() if key != "self"}
        request["undirected"] = undirected or None
        return self._make("/v1/datasets/generate", sizes(request))

    def train(self, dataset: str | Dataset, **settings: Any) -> Job:
        """Starts a job, and returns it at once.

        The arguments are the flags of ``hopmesh train start`` with underscores, such as
        ``model="sage"``, ``hidden=256``, ``weight_decay=5e-4``, ``fanout=[15, 10]``,
        ``relation_fanout={"cites": [20, 10]}``, ``batch=1024``, ``task="link"``,
        ``edge_split=[0.85, 0.05, 0.1]``, ``class_weights=[1, 2.5]`` or
        ``deterministic=True``. A setting that ``hopmesh train
        options`` lists (or :func:`hopmesh.options`) is written with an underscore for its dot,
        such as ``leap_mode="stay"`` for ``leap.mode``. ``sweep`` is a dict of lists, and ``from_``
        a job with whose model training begins. The daemon checks all of them, and refuses what it
        does not know::

            job = mesh.train("cora", model="gcn", hidden=16, epochs=100)
            for epoch in job:
                print(epoch["epoch"], epoch["loss"], epoch["val_acc"])
        """
        name = dataset.name if isinstance(dataset, Dataset) else dataset
        answer = self._client.post("/v1/jobs", train_request(name, settings))
        return Job(self._client, answer["id"])

    @overload
    def loader(self, dataset: str | Dataset, *, split: str, **more: Any) -> EvalLoader: ...

    @overload
    def loader(self, dataset: str | Dataset, *, ids: Any, **more: Any) -> EvalLoader: ...

    @overload
    def loader(
        self,
        dataset: str | Dataset,
        *,
        fanout: Sequence[int] | int | None = None,
        layers: int | None = None,
        batch_size: int = 1024,
        epochs: int = 1,
        seed: int | None = None,
        split: int | None = None,
        shuffle: bool | None = None,
        deal: str | None = None,
        normalize_features: str | None = None,
        kind: str = "auto",
        copy: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> Loader: ...

    def loader(  # type: ignore[misc]  # the others take what this does
        self,
        dataset: str | Dataset,
        *,
        fanout: Sequence[int] | int | None = None,
        layers: int | None = None,
        batch_size: int = 1024,
        epochs: int = 1,
        seed: int | None = None,
        split: int | str | None = None,
        ids: Any = None,
        shuffle: bool | None = None,
        deal: str | None = None,
        normalize_features: str | None = None,
        kind: str = "auto",
        copy: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> Loader | EvalLoader:
        """Starts a job whose model is this program's, or takes it up, and returns its batches.

        Each node needs one process that calls this with the same arguments: :meth:`run`,
        ``hopmesh run`` and ``python -m hopmesh.run`` start them. On a mesh of one node, this
        process is enough.

        ``batch_size`` counts the seed vertices of all ranks together. ``fanout`` says how many
        neighbours are drawn at each hop, from the seed vertices outwards, and 0 takes all; without
        it all are taken, for ``layers`` hops. The batches are the same on any number of nodes.
        ``deal`` is ``"owner"`` (each node gets the seed vertices that it holds, the default) or
        ``"slices"`` (equal shares). ``kind`` says what a batch is: ``"pyg"``, ``"torch"`` or
        ``"numpy"``; by default the first of them that is installed.

        Arrays of a batch lie in memory shared with the daemon, which fills it anew for the next
        batch: with ``copy`` they are yours. See :class:`Loader`.

        With ``split="train"``, ``"val"``, ``"test"`` or ``"all"``, or with ``ids``, it returns an
        :class:`EvalLoader`: each of these vertices once, in order, beside the epochs of the loader
        whose job goes on, or in a job of its own. Then ``batch_size`` counts those of this rank.
        The parts are those of the job's split, which is the first unless the loader names another.
        """
        hops = [fanout] if isinstance(fanout, int) else fanout
        if hops is None and layers is None:
            raise Error("how many hops a batch has is missing: give fanout, such as [15, 10]")
        if hops is not None and layers not in (None, len(hops)):
            raise Error(f"fanout has {len(hops)} hops and layers is {layers}: give one of them")
        name = dataset.name if isinstance(dataset, Dataset) else dataset
        if isinstance(split, str) or ids is not None:
            part = _part_of(split, ids, shuffle)
            about = {"normalize_features": normalize_features, "settings": settings}
            fanouts = [0] * (layers or 0) if hops is None else list(hops)
            return self._part.evaluation(name, part, ids, about, fanouts, batch_size, kind, copy)
        if shuffle is False:
            raise Error(
                "a loader that trains shuffles each epoch: give split='train' for each vertex once"
            )
        given: dict[str, Any] = {
            "model": "program",
            "strategy": "program",
            "layers": layers if hops is None else len(hops),
            "fanout": hops,
            "batch": batch_size,
            "epochs": epochs,
            "seed": seed,
            "split": split,
            "normalize_features": normalize_features,
            "program.deal": deal,
            "settings": settings,
        }
        return self._part.loader(name, given, kind, copy)

    def run(self, script: str | os.PathLike[str], arguments: Sequence[str] = ()) -> None:
        """Runs a script beside each node, and returns when it has ended well everywhere.

        The daemons start it, as ``hopmesh run`` has them do: where nodes run scripts, and what
        happens when one dies, is said there. The file alone is sent. Its output is printed here,
        with the node's name in front.
        """
        try:
            with open(script, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"the script {os.fspath(script)} can't be read: {error}") from None
        request = {"name": os.path.basename(script), "script": text, "args": list(arguments)}
        for event in self._client.stream("POST", "/v1/runs", request):
            if "line" in event or event.get("note"):
                said = str(event.get("line", event.get("note")))
                print(f"{event['node']}: {_printable(said)}", flush=True)
            if event.get("done"):
                return
        raise Error(f"the daemon at {self.address} went away before the script had ended")

    def pyg(self, dataset: str | Dataset) -> Any:
        """Returns a dataset as PyG's remote backend: a pair of a feature and a graph store.

        It stands where PyG's loaders take data, and has the masks that are asked of data. Nothing
        is copied here but batches::

            data = mesh.pyg("cora")
            loader = NeighborLoader(data, num_neighbors=[10, 10], input_nodes=data.train_mask,
                                    neighbor_sampler=mesh.sampler("cora", [10, 10]))

        Vertices have the mesh's numbers, those of ``batch.n_id``. See :mod:`hopmesh.pyg`.
        """
        from hopmesh.pyg import RemoteData

        return RemoteData(self._door(dataset))

    def sampler(self, dataset: str | Dataset, num_neighbors: Sequence[int] | int) -> Any:
        """Returns a sampler for PyG's loaders whose batches the daemon draws.

        ``num_neighbors`` is as in PyG: -1 takes all. Each process has one, so ``num_workers`` of
        the loader stays 0.
        """
        from hopmesh.pyg import Sampler

        return Sampler(self._door(dataset), num_neighbors)

    def _door(self, dataset: str | Dataset) -> Any:
        try:
            from hopmesh.pyg import Door
        except ImportError:
            raise Error(
                "PyTorch Geometric is not here: pip install torch torch_geometric"
            ) from None
        return Door(self._part, dataset if isinstance(dataset, Dataset) else self.dataset(dataset))

    def all_reduce(self, value: Any, op: str | None = None, weight: float | None = None) -> Any:
        """Sums over all ranks of the loader's job, and returns the value. All ranks call it.

        Of a PyTorch model it averages the gradients, weighted by the batches' seed vertices, so
        that a loss that is a mean gives the gradients of one machine with the whole batch; a
        parameter without a gradient counts as zero. Tensors, arrays, and lists of them get their
        sum, in place; of a number it is returned. ``op="mean"`` averages them, weighted by
        ``weight``: the seed vertices of the batch, and 1 outside of steps. The result has the
        same bits on all ranks.
        """
        return self._part.reduce(value, op, weight)

    def broadcast(self, value: Any, root: int = 0) -> Any:
        """Gives all ranks what one rank has: the weights of a model, tensors or arrays, in place.

        All ranks call it.
        """
        return self._part.broadcast(value, root)

    def checkpoint(self, state: Any) -> None:
        """Keeps a state from which the job goes on if its nodes change. All ranks call it.

        It is that after the batch under way, or before the first one of the next epoch. It may
        have dicts, lists, numbers, texts, bytes, arrays and tensors, such as ``state_dict()`` of
        a model and of an optimizer. Keep what is alike on all ranks: after an interruption all
        get what one of them has kept.
        """
        self._part.checkpoint(state)

    def restore(self) -> Any:
        """Returns the last checkpoint if the job goes on from one, else None.

        Call it before the first batch.
        """
        return self._part.restore()

    def job(self, id: str) -> Job:
        """Returns a job by its id."""
        job = Job(self._client, id)
        job.show()
        return job

    @property
    def jobs(self) -> dict[str, Job]:
        """The jobs by id."""
        return {
            about["id"]: Job(self._client, about["id"]) for about in self._client.get("/v1/jobs")
        }

    def log_to_mlflow(
        self, job: Job | str, *, experiment: str | None = None, run_name: str | None = None
    ) -> str:
        """Logs a job to MLflow: see :func:`hopmesh.log_to_mlflow`."""
        job = self.job(job) if isinstance(job, str) else job
        return log_to_mlflow(job, experiment=experiment, run_name=run_name)

    def _import(
        self, options: dict[str, Any], paths: Sequence[str | os.PathLike[str]] | Iterable[Any]
    ) -> Dataset:
        listed = [_absolute(os.fspath(path)) for path in paths]
        # The folder of a member is named in a list only.
        alone = len(listed) == 1 and os.path.isabs(listed[0])
        where = {"source": listed[0]} if alone else {"sources": listed}
        return self._make("/v1/datasets/import", {**options, **where})

    def _make(self, path: str, request: dict[str, Any]) -> Dataset:
        for event in self._client.stream("POST", path, request):
            if about := event.get("dataset"):
                return Dataset(self._client, self._folders, about)
        raise Error(f"the daemon at {self.address} went away before the dataset was made")


def _part_of(split: int | str | None, ids: Any, shuffle: bool | None) -> str | None:
    """Returns the part of the split that an evaluation is of; None: ids are given."""
    if shuffle:
        raise Error("an evaluation has each vertex once, in order: leave shuffle out")
    if ids is not None:
        if split is not None:
            raise Error(f"give ids or split={split!r}, and not both")
        return None
    if split not in ("train", "val", "test", "all"):
        raise Error(f"split is {split!r}: give 'train', 'val', 'test', 'all', or its number")
    return str(split)


def _absolute(path: str) -> str:
    node, colon, rest = path.partition(":")
    there = colon and "/" not in node and rest.startswith("/")
    return path if there else os.path.abspath(path)


def connect(
    address: str | None = None,
    *,
    token: str | None = None,
    ca: str | os.PathLike[str] | None = None,
) -> Mesh:
    """Returns the mesh of a daemon that runs.

    ``address`` is ``unix:PATH``, ``HOST:PORT``, or the path of a socket or a data directory. A
    daemon on another machine is at ``https://HOST:PORT``, and needs a ``token``: what ``hopmesh
    api token create`` prints, or that of $HOPMESH_API_TOKEN_FILE or $HOPMESH_API_TOKEN. The token
    is shown to nodes of its mesh and to nobody else: by default those of the CA that it names, or
    those of ``ca``, the file identity/ca.pem of a node. Loaders and graphs in memory need
    a daemon on this machine.

    Without it, the daemon is the one beside which a run has started this script. Elsewhere it is
    the one that the ``hopmesh`` command talks to here: that of $HOPMESH_ADDR, else the one with
    the default data directory.
    """
    if rendezvous.run_key():
        end_in_a_sentence()
    mesh = Mesh(Client(address or default_address(), token, ca))
    if address is None and (folders := os.environ.get("HOPMESH_FOLDERS")):
        mesh._folders = folders.split(os.pathsep)  # hopmesh.up() has them all on this machine
    mesh.status()
    return mesh


def _printable(text: str) -> str:
    """Returns a line of another machine without what a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
