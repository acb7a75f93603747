// Jobs: the list, and all of the one that is selected.

import { curves, meter, pipeline, stacks } from "./charts.js";
import { h } from "./dom.js";
import { bytes, count, figure, list, plural, seconds, sentence, share } from "./format.js";
import { better, main, metricNames, of, scored } from "./metrics.js";
import { fact } from "./mesh.js";

const kinds = ["feature", "topology", "model", "gradient", "activation", "shard", "control"];
const phases = ["sample", "gather", "compute", "reduce", "wait"];
const mostRows = 20;
const mostModels = 8; // curves of a sweep

export function jobs(state) {
  if (!state.jobs) return null;
  if (state.jobs.length === 0) return h("p", { class: "quiet" }, "There are no jobs. ", h("code", null, "hopmesh train start --dataset NAME"), " starts one.");
  return [table(state), state.job && detail(state, state.job)];
}

function table(state) {
  const head = ["Job", "State", "Dataset", "Model", "Strategy", "Epoch", "Val", "Test", "Nodes"];
  const rows = [...state.jobs].reverse();
  return h("div", { key: "table", class: "wide", tabindex: 0, role: "region", "aria-label": "All jobs" }, h("table", null,
    h("thead", null, h("tr", null, head.map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", null, rows.map((j) => h("tr", { key: j.id, class: j.id === state.selected ? "selected" : "", "data-job": j.id },
      h("th", { scope: "row" }, h("a", { href: `#${encodeURIComponent(j.id)}`, "aria-current": j.id === state.selected && "true" }, j.id)),
      h("td", null, h("span", { class: `badge ${j.state}` }, j.state)),
      h("td", null, j.dataset), h("td", null, j.models > 1 ? `${j.models} models (${j.model})` : j.model), h("td", null, j.strategy),
      h("td", { class: "number" }, `${j.epoch}/${j.epochs_total}`),
      h("td", { class: "number" }, scored(j.best, "val")), h("td", { class: "number" }, scored(j.best, "test")), h("td", null, list(j.nodes)))))));
}

function detail(state, j) {
  const strategy = j.history.at(-1)?.strategy || j.strategy;
  const why = j.history.at(-1)?.why || j.why;
  return h("article", { key: `job ${j.id}`, class: "card job", "aria-label": `Job ${j.id}`, "data-job": j.id, "data-state": j.state, "data-epoch": j.history.at(-1)?.epoch || 0 },
    h("h3", null, `Job ${j.id} `, h("span", { class: `badge ${j.state}` }, j.state)),
    j.error && h("p", { class: "failure" }, sentence(j.error)),
    (j.problems.length > 0 || j.notes.length > 0) && h("ul", { class: "list" }, [...new Set([...j.problems, ...j.notes])].map((p) => h("li", null, sentence(p)))),
    h("dl", { class: "facts" },
      fact("Dataset", j.dataset), fact("Model", j.models.length > 0 ? `${j.models.length} models` : j.model),
      fact("Strategy", strategy), why && fact("Why", why),
      fact("Nodes", nodes(j)), fact("Epoch", position(state, j)),
      fact("Best", j.best ? `epoch ${j.best.epoch}: ${scored(j.best, "val")} val, ${scored(j.best, "test")} test` : "–"),
      j.history.length > 0 && fact("Last epoch", `${seconds(j.history.at(-1).seconds)}, ${bytes(sent(j.history.at(-1)))} sent`),
      j.memory && fact("Memory", memory(state, j))),
    h("div", { class: "charts" }, charts(j)),
    models(j),
    j.history.length > 0 && h("details", { key: "rows" }, h("summary", null, "Epochs as a table"), epochs(j)));
}

const nodes = (j) => list(j.nodes.map((n, i) => (j.devices[i] && j.devices[i] !== "cpu" ? `${n} (${j.devices[i]})` : n)));

const sent = (e) => kinds.reduce((sum, k) => sum + (e.bytes[k] || 0), 0);

function position(state, j) {
  const p = state.progress;
  if (j.state !== "running" || !p) return `${j.history.at(-1)?.epoch || 0} of ${j.epochs_total}`;
  return `${p.epoch} of ${j.epochs_total}, ${p.evaluating ? "evaluating" : `step ${p.step} of ${p.steps}`}`;
}

// memory compares what the job takes with the least that one of its nodes may take.
function memory(state, j) {
  const bounds = (state.plan?.members || []).filter((m) => m.memory > 0 && j.nodes.includes(m.name)).map((m) => m.memory);
  const bound = bounds.length > 0 ? Math.min(...bounds) : 0;
  const text = `${bytes(j.memory.taken)} taken, ${j.memory.forecast ? bytes(j.memory.forecast) : "nothing"} forecast${bound ? `, ${bytes(bound)} allowed` : ""}`;
  return [text, bound > 0 && meter(text, j.memory.taken, bound, j.memory.forecast), j.memory.fell_back.map((f) => h("p", { class: "quiet" }, sentence(f)))];
}

function charts(j) {
  const epochs = j.history;
  const over = (of) => epochs.map((e) => [e.epoch, of(e)]);
  const last = epochs.at(-1);
  return [
    curves({ name: "loss", title: "Loss", format: figure, series: [{ name: "training", colour: "c0", points: over((e) => e.loss) }] }),
    ...metricNames(epochs).map(({ name, title, format }) => curves({ name, title, format, series: ["train", "val", "test"].map((part, i) =>
      ({ name: part, colour: `c${i}`, points: over((e) => of(e, part, name)) })) })),
    stacks({ name: "phases", title: "Seconds of an epoch by phase", format: seconds, epochs,
      parts: [...phases.map((name, i) => ({ name, colour: `c${i}`, of: (e) => e.phases[name] })), { name: "evaluate", colour: "c7", of: (e) => e.eval?.seconds }] }),
    stacks({ name: "bytes", title: "Bytes sent in an epoch by kind", format: bytes, epochs,
      parts: [...kinds.map((name, i) => ({ name, colour: `c${i}`, of: (e) => e.bytes[name] })), { name: "evaluate", colour: "c7", of: (e) => e.eval && sent(e.eval) }] }),
    epochs.some((e) => e.edges_seen > 0) && curves({ name: "coverage", title: `Edges seen by their groups, super-epoch ${last.super_epoch || 1}`, format: share, low: 0, high: 1,
      series: [{ name: "seen so far", colour: "c2", points: over((e) => e.edges_seen || 0) }] }),
    last?.predicted && pipeline(last.predicted.stages, last.predicted.ways, recipe(j)?.layers),
    ...figures(epochs),
  ];
}

const recipe = (j) => j.recipe?.model;

// figures are what a strategy reports beside what all do.
function figures(epochs) {
  const names = [...new Set(epochs.flatMap((e) => (e.figures || []).map((f) => f.name)))].slice(0, 8);
  return names.map((name) => curves({
    name: `figure-${name}`, title: name, format: figure,
    series: [{ name, colour: "c4", points: epochs.map((e) => [e.epoch, e.figures?.find((f) => f.name === name)?.value]) }],
  }));
}

// models compares those of a sweep, the best first.
function models(j) {
  if (j.models.length === 0) return null;
  const ranked = j.models.map((m, i) => ({ ...m, index: i })).sort((a, b) => better(a.best, b.best));
  const ranking = main(ranked.map((m) => m.best));
  const words = (m) => Object.entries(m.params).map(([k, v]) => `${k}=${v}`).join(" ");
  return h("div", { key: "models", class: "models" },
    h("div", { class: "charts" }, curves({
      name: "models", title: ranked.length > mostModels ? `Validation of the ${mostModels} best models` : "Validation of each model", format: ranking.format,
      series: ranked.slice(0, mostModels).map((m, i) => ({ name: words(m), colour: `c${i}`, points: m.history.map((e) => [e.epoch, of(e, "val", ranking.name)]) })),
    })),
    h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "Models of the sweep" }, h("table", null,
      h("thead", null, h("tr", null, ["Model", "Parameters", "Best epoch", "Val", "Test", "Loss"].map((t) => h("th", { scope: "col" }, t)))),
      h("tbody", null, ranked.map((m) => h("tr", { key: m.index, "data-model": m.index },
        h("th", { scope: "row" }, m.index), h("td", null, words(m), m.diverged ? ` (${m.diverged})` : ""), h("td", { class: "number" }, m.best?.epoch ?? "–"),
        h("td", { class: "number" }, scored(m.best, "val")), h("td", { class: "number" }, scored(m.best, "test")), h("td", { class: "number" }, figure(m.history.at(-1)?.loss))))))));
}

function epochs(j) {
  const rows = j.history.slice(-mostRows).reverse();
  const head = ["Epoch", "Loss", "Train", "Val", "Test", "Time", ...phases, "Sent", "Local rows", "Remote rows"];
  return h("div", { class: "wide", tabindex: 0, role: "region", "aria-label": `The last ${plural(rows.length, "epoch")}` }, h("table", null,
    h("thead", null, h("tr", null, head.map((t) => h("th", { scope: "col" }, t)))),
    h("tbody", null, rows.map((e) => h("tr", { key: e.epoch }, h("th", { scope: "row" }, e.epoch),
      [figure(e.loss), scored(e, "train"), scored(e, "val"), scored(e, "test"), seconds(e.seconds), ...phases.map((p) => seconds(e.phases[p])),
        bytes(sent(e)), count(e.rows.local), count(e.rows.remote)].map((v) => h("td", { class: "number" }, v)))))));
}
