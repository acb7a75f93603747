"""GraphSAGE on Cora by neighbour sampling, as PyG's documentation writes it."""

import torch
import torch.nn.functional as F
from torch_geometric.datasets import Planetoid
from torch_geometric.loader import NeighborLoader
from torch_geometric.nn import SAGEConv

data = Planetoid("data", name="Cora")[0]
train_loader = NeighborLoader(data, num_neighbors=[10, 10], input_nodes=data.train_mask, batch_size=32, shuffle=True)
classes = int(data.y.max()) + 1


class SAGE(torch.nn.Module):
    def __init__(self, in_channels, hidden_channels, out_channels):
        super().__init__()
        self.conv1 = SAGEConv(in_channels, hidden_channels)
        self.conv2 = SAGEConv(hidden_channels, out_channels)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        x = F.dropout(x, p=0.5, training=self.training)
        return self.conv2(x, edge_index)


torch.manual_seed(1)
model = SAGE(data.num_features, 64, classes)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)

for epoch in range(1, 13):
    model.train()
    total_loss = total_correct = total_examples = 0
    for batch in train_loader:
        optimizer.zero_grad()
        y = batch.y[: batch.batch_size]
        out = model(batch.x, batch.edge_index)[: batch.batch_size]
        loss = F.cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        total_loss += float(loss) * batch.batch_size
        total_correct += int((out.argmax(dim=-1) == y).sum())
        total_examples += batch.batch_size
    print(f"Epoch {epoch:02d}: loss {total_loss / total_examples:.4f}, "
          f"train accuracy {total_correct / total_examples:.4f}")
