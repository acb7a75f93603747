"""Sources in a store that speaks S3: moto, an emulator that others wrote."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from gzip import compress
from typing import Any

import boto3
import numpy as np
import pytest
from moto import server

import hopmesh

# A ring of ten vertices, as the Open Graph Benchmark lays its graphs out.
RING = {
    "raw/edge.csv.gz": "".join(f"{i},{(i + 1) % 10}\n" for i in range(10)),
    "raw/node-feat.csv.gz": "".join(f"{i}.5,{-i}\n" for i in range(10)),
    "raw/node-label.csv.gz": "".join(f"{i % 2}\n" for i in range(10)),
    "raw/num-node-list.csv.gz": "10\n",
    "raw/num-edge-list.csv.gz": "10\n",
    "split/time/train.csv.gz": "0\n1\n2\n3\n",
    "split/time/valid.csv.gz": "4\n5\n",
    "split/time/test.csv.gz": "6\n7\n8\n9\n",
}


@pytest.fixture(scope="module")
def bucket() -> Iterator[Any]:
    """A bucket, and in the environment what leads daemons to it."""
    with pytest.MonkeyPatch.context() as patch:
        serving = server.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        serving.start()
        host, port = serving.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL_S3": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        store = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        store.create_bucket(Bucket="graphs")
        yield store
        serving.stop()


@pytest.fixture(scope="module")
def mesh(bucket: Any) -> Iterator[hopmesh.LocalMesh]:
    with hopmesh.up(nodes=1) as mesh:
        yield mesh


def check(graph: hopmesh.Graph) -> None:
    assert sorted(graph.edge_index.T.tolist()) == [[i, (i + 1) % 10] for i in range(10)]
    assert graph.y.tolist() == [0, 1] * 5 and graph.x[3].tolist() == [3.5, -3]
    assert np.flatnonzero(graph.train_mask).tolist() == [0, 1, 2, 3]


def test_tables(mesh: hopmesh.LocalMesh, bucket: Any) -> None:
    nodes = "id,label,split,a,b\n" + "".join(
        f"{i},{i % 2},{'train' if i < 4 else 'val' if i < 6 else 'test'},{i}.5,{-i}\n"
        for i in range(10)
    )
    edges = "src,dst\n" + RING["raw/edge.csv.gz"]
    bucket.put_object(Bucket="graphs", Key="tables/nodes.csv", Body=nodes.encode())
    bucket.put_object(Bucket="graphs", Key="tables/edges.csv.gz", Body=compress(edges.encode()))
    mesh.import_("tables", "s3://graphs/tables")
    check(mesh.load_dataset("tables"))


def test_folder_of_ogb(mesh: hopmesh.LocalMesh, bucket: Any) -> None:
    for name, text in RING.items():
        bucket.put_object(Bucket="graphs", Key="ring/" + name, Body=compress(text.encode()))
    mesh.import_("folder", "s3://graphs/ring")
    check(mesh.load_dataset("folder"))


def test_archive_of_ogb(mesh: hopmesh.LocalMesh, bucket: Any) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in RING.items():
            archive.writestr("ring/" + name, compress(text.encode()))
    bucket.put_object(Bucket="graphs", Key="ring.zip", Body=packed.getvalue())
    mesh.import_("archive", "s3://graphs/ring.zip")
    check(mesh.load_dataset("archive"))


def test_a_large_file(mesh: hopmesh.LocalMesh, bucket: Any) -> None:
    drawn = np.random.default_rng(2)
    x = drawn.random((50_000, 40), np.float32)  # it is asked for in several parts
    edges = np.stack([np.arange(50_000), drawn.integers(0, 50_000, 50_000)])
    packed = io.BytesIO()
    np.savez(packed, edge_index=edges, x=x)
    bucket.put_object(Bucket="graphs", Key="large.npz", Body=packed.getvalue())
    mesh.import_("large", "s3://graphs/large.npz")
    assert np.array_equal(mesh.load_dataset("large").x, x)


def test_what_is_not_there(mesh: hopmesh.LocalMesh) -> None:
    for address, says in {
        "s3://graphs/none": "there is neither a file nor a folder at s3://graphs/none",
        "s3://nobody/x.npz": "nobody",
    }.items():
        with pytest.raises(hopmesh.Error, match=says):
            mesh.import_("none", address)
