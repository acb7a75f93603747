// Datasets: which node holds which shard.

import { h } from "./dom.js";
import { bytes, count, plural, sentence, share } from "./format.js";

const mostCells = 4096;

export function datasets(state, show) {
  if (!state.datasets) return null;
  if (state.datasets.length === 0) return h("p", { class: "quiet" }, "There are no datasets. ", h("code", null, "hopmesh dataset import"), " brings one in.");
  return state.datasets.map((d) => h("details", {
    key: d.name, class: "card dataset", "data-dataset": d.name, first: { open: state.open.has(d.name) },
    ontoggle: (e) => show(d.name, e.currentTarget.open),
  },
  h("summary", null, h("b", null, d.name), ` ${d.stage}, ${count(d.vertices)} vertices, ${count(d.edges)} edges, ${plural(d.shards, "shard")}, ${bytes(d.bytes)}`,
    d.problems > 0 && " ", d.problems > 0 && h("span", { class: "badge failed" }, plural(d.problems, "problem"))),
  detail(state, state.shown.get(d.name))));
}

function detail(state, d) {
  if (!d) return null;
  return [
    d.problems.length > 0 && h("ul", { class: "list" }, d.problems.map((p) => h("li", null, sentence(p)))),
    h("p", { class: "quiet" }, `${plural(d.features, "feature")}, ${plural(d.classes, "class", "classes")}, ${d.dtype}; `,
      d.shards.length > 1 ? `${share(d.edge_cut_share)} of edges between shards, ` : "", `cut by ${d.partitioner || "–"}`),
    grid(state, d),
  ];
}

// grid has a row a node: the shards that it owns, then its copies.
function grid(state, d) {
  const rows = new Map();
  const at = (name) => {
    if (!rows.has(name)) rows.set(name, { owned: [], copies: [] });
    return rows.get(name);
  };
  for (const m of state.members || []) if (m.status !== "left") at(m.name);
  for (const s of d.shards) {
    if (s.owner) at(s.owner).owned.push(s);
    else at("").owned.push(s);
    for (const r of s.replicas) at(r).copies.push(s);
  }
  const status = new Map((state.members || []).map((m) => [m.name, m.status]));
  const few = d.shards.length <= mostCells;
  return h("div", { class: "grid", role: "table", "aria-label": `Shards of ${d.name} on nodes` },
    [...rows].filter(([name, r]) => name !== "" || r.owned.length > 0).map(([name, r]) =>
      h("div", { key: name, role: "row", class: `row ${status.get(name) || ""}`, "data-holder": name },
        h("span", { role: "rowheader", class: "holder" }, name || "nobody"),
        h("span", { role: "cell", class: "cells", "aria-label": `owns ${numbers(r.owned)}; copies ${numbers(r.copies)}` },
          few ? [cells(r.owned, "owned", "owned by"), cells(r.copies, "copy", "copied to")].map((c) => c(name)) : `owns ${r.owned.length}, copies ${r.copies.length}`))),
    h("p", { class: "quiet" }, h("span", { class: "cell owned", "aria-hidden": "true" }), " owned ", h("span", { class: "cell copy", "aria-hidden": "true" }), " copy"));
}

const numbers = (shards) => (shards.length ? shards.map((s) => s.id).join(" ") : "none");

const cells = (shards, kind, words) => (name) => shards.map((s) => h("span", {
  key: `${kind} ${s.id}`, class: `cell ${kind}`, "data-shard": s.id,
  title: `Shard ${s.id}, ${name ? `${words} ${name}` : "owned by nobody"}: ${count(s.vertices)} vertices, ${count(s.edges)} edges, ${bytes(s.bytes)}`,
}, s.id));
