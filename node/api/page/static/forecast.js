// A form that asks the daemon what a job would take on meshes of other sizes, and the answer.

import { lines, Refused } from "./api.js";
import { h } from "./dom.js";
import { bytes, seconds, sentence } from "./format.js";

const presets = ["arxiv", "reddit", "products", "papers100m", "mag240m-papers"];
const models = ["gcn", "sage", "gat", "gin", "gcnii", "resgcn", "rgcn", "hgt", "hetero:sage", "hetero:gat", "hetero:gcn", "hetero:gin", "mpnn", "mlp"];
const rates = { "400 Mbit/s": 50e6, "1 Gbit/s": 125e6, "10 Gbit/s": 1.25e9, "100 Gbit/s": 12.5e9 };

const kinds = ["feature", "topology", "model", "gradient", "activation", "shard", "control"];
const sent = (b) => kinds.reduce((sum, k) => sum + (b?.[k] || 0), 0);

// forecast draws the form and what state.forecast holds. changed is called when that changes.
export function forecast(state, changed) {
  const f = state.forecast;
  const ready = (state.datasets || []).filter((d) => d.stage === "ready").map((d) => d.name);
  const graphs = [...ready.map((n) => [`dataset ${n}`, n]), ...presets.map((n) => [`preset ${n}`, `a graph like ${n}`])];
  return [
    h("form", { key: "form", onsubmit: (e) => ask(e, state, changed) },
      field("Graph", h("select", { name: "graph" }, graphs.map(([value, text]) => h("option", { key: value, value }, text)))),
      field("Model", h("select", { name: "model" }, models.map((m) => h("option", { key: m, value: m }, m)))),
      field("Layers", h("input", { name: "layers", type: "number", min: 1, max: 64, first: { value: 2 } })),
      field("Hidden", h("input", { name: "hidden", type: "number", min: 1, max: 65536, first: { value: 128 } })),
      field("Nodes", h("input", { name: "nodes", pattern: "[0-9]+( *, *[0-9]+)*", first: { value: "2, 4, 8" } })),
      field("Links", h("select", { name: "rate" }, Object.keys(rates).map((r) => h("option", { key: r, value: r, first: { selected: r === "10 Gbit/s" ? "" : null } }, r)))),
      f.needsSecret && field("Secret", h("input", { name: "secret", type: "password", autocomplete: "off", required: "" })),
      h("button", { key: "ask", disabled: f.busy && "" }, f.busy ? "Computing" : "Forecast")),
    f.error && h("p", { key: "error", class: "failure", role: "alert" }, sentence(f.error)),
    f.rows.length > 0 && table(f.rows),
    f.assumptions.length > 0 && h("details", { key: "assumptions" }, h("summary", null, "What it assumes"),
      h("ul", { class: "list" }, f.assumptions.map((a) => h("li", null, sentence(a))))),
  ];
}

const field = (name, input) => h("label", { key: name }, `${name} `, input);

function table(rows) {
  return h("div", { key: "rows", class: "wide", tabindex: 0, role: "region", "aria-label": "The forecast" }, h("table", null,
    h("thead", null, h("tr", null, ["Nodes", "Strategy", "An epoch", "Sent in an epoch", "Memory of a node", ""].map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", null, rows.map((r) => h("tr", { key: `${r.nodes} ${r.strategy}`, class: r.best ? "selected" : "", "data-forecast": r.strategy },
      h("td", { class: "number" }, r.nodes), h("th", { scope: "row" }, r.strategy),
      h("td", { class: "number" }, r.seconds ? seconds(r.seconds) : "–"), h("td", { class: "number" }, bytes(sent(r.bytes))),
      h("td", { class: "number" }, r.memory ? bytes(r.memory) : "–"),
      h("td", null, r.best ? "the fastest that is exact" : r.fits ? (r.exact ? "" : "not exact") : sentence(r.why || "it does not fit"))))),
  ));
}

async function ask(event, state, changed) {
  event.preventDefault();
  const f = state.forecast;
  if (f.busy) return;
  const form = new FormData(event.target);
  const [kind, name] = [form.get("graph").split(" ", 1)[0], form.get("graph").replace(/^\S+ /, "")];
  const job = { model: form.get("model"), layers: Number(form.get("layers")), hidden: Number(form.get("hidden")) };
  if (kind === "dataset") job.dataset = name;
  const request = { job, nodes: form.get("nodes").split(",").map(Number), bandwidth: rates[form.get("rate")] };
  if (kind === "preset") request.preset = name;
  Object.assign(f, { busy: true, error: "", rows: [], assumptions: [] });
  changed();
  const headers = { "Content-Type": "application/json" };
  const secret = form.get("secret");
  if (secret) headers.Authorization = `Bearer ${secret.trim()}`;
  try {
    await lines("/v1/forecasts", null, (line) => {
      if (line.row) f.rows.push(line.row);
      if (line.error) f.error = line.error.error;
      if (line.end) Object.assign(f, { rows: line.end.rows, assumptions: line.end.assumptions });
      changed();
    }, { method: "POST", headers, body: JSON.stringify(request) });
    if (f.rows.length === 0 && !f.error) f.error = "the daemon ended without an answer";
  } catch (err) {
    f.needsSecret ||= err instanceof Refused && err.status === 403;
    f.error = err instanceof Refused ? err.message : "the daemon did not answer: try again";
  }
  f.busy = false;
  changed();
}
