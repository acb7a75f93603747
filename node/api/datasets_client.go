package api

import (
	"context"
	"net/http"
	"net/url"
)

// datasetsHint is the advice for when a daemon goes away during an operation.
const datasetsHint = "`hopmesh dataset list` shows what the mesh holds"

// ImportDataset makes the node import a graph. It calls tell in this goroutine with each
// event but the last. If ctx ends, the import is cancelled.
func (c *Client) ImportDataset(ctx context.Context, r ImportRequest, tell func(DatasetEvent)) (Dataset, error) {
	return c.make(ctx, "/v1/datasets/import", r, tell)
}

// GenerateDataset makes the node generate a graph, as ImportDataset does.
func (c *Client) GenerateDataset(ctx context.Context, r GenerateRequest, tell func(DatasetEvent)) (Dataset, error) {
	return c.make(ctx, "/v1/datasets/generate", r, tell)
}

func (c *Client) make(ctx context.Context, path string, in any, tell func(DatasetEvent)) (Dataset, error) {
	last, err := operate(ctx, c, http.MethodPost, path, in, datasetsHint, tell)
	if err != nil {
		return Dataset{}, err
	}
	if last.Dataset == nil {
		return Dataset{}, c.cut(datasetsHint, nil)
	}
	return *last.Dataset, nil
}

// Datasets lists the datasets of the mesh.
func (c *Client) Datasets(ctx context.Context) (list []DatasetSummary, err error) {
	return list, c.call(ctx, readTimeout, http.MethodGet, "/v1/datasets", nil, &list)
}

// Dataset describes one dataset.
func (c *Client) Dataset(ctx context.Context, name string) (d Dataset, err error) {
	return d, c.call(ctx, readTimeout, http.MethodGet, "/v1/datasets/"+url.PathEscape(name), nil, &d)
}

// VerifyDataset makes every holder verify its copy of every shard.
func (c *Client) VerifyDataset(ctx context.Context, name string, tell func(DatasetEvent)) error {
	_, err := operate(ctx, c, http.MethodPost, "/v1/datasets/"+url.PathEscape(name)+"/verify", nil, datasetsHint, tell)
	return err
}

// RemoveDataset removes a dataset from the mesh, with force also one that kept models
// need.
func (c *Client) RemoveDataset(ctx context.Context, name string, force bool) error {
	path := "/v1/datasets/" + url.PathEscape(name)
	if force {
		path += "?force=true"
	}
	return c.call(ctx, changeTimeout, http.MethodDelete, path, nil, nil)
}
