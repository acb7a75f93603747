// How well a job predicts: accuracies, or the metrics of a task that has none.

import { figure, share } from "./format.js";

const known = {
  accuracy: { title: "Accuracy", format: share },
  micro_f1: { title: "Micro-F1", format: share },
  macro_f1: { title: "Macro-F1", format: share },
  roc_auc: { title: "ROC-AUC", format: share },
  average_precision: { title: "Average precision", format: share },
  mrr: { title: "MRR", format: figure },
  rmse: { title: "RMSE", format: figure, lower: true },
  mae: { title: "MAE", format: figure, lower: true },
  r2: { title: "R²", format: figure },
};
const most = 8;

// hits returns how the share of pairs with a rank up to some number is shown; nothing of other metrics.
function hits(name) {
  const at = /^hits_at_([0-9]+)$/.exec(name);
  return at ? { title: `Hits@${at[1]}`, format: share, at: Number(at[1]) } : undefined;
}

// described returns how a metric is shown; those of a later version by their names.
const described = (name) => ({ name, ...(Object.hasOwn(known, name) ? known[name] : hits(name) ?? { title: name, format: figure }) });

// main returns the metric that epochs, or the best ones of several models, are compared by.
export const main = (all) => described(all.find((e) => e?.metric)?.metric || "accuracy");

// of returns a metric of a part of the split, of an epoch or a best one.
export function of(e, part, name) {
  const value = e?.metrics?.[part]?.[name];
  return value ?? (name === "accuracy" ? e?.[`${part}_acc`] : undefined);
}

// metricNames describes all metrics of some epochs, in the order in which they are known.
export function metricNames(epochs) {
  const names = new Set(epochs.flatMap((e) => ["train", "val", "test"].flatMap((part) => Object.keys(e.metrics?.[part] || {}))));
  if (epochs.some((e) => ["train", "val", "test"].some((part) => Number.isFinite(e[`${part}_acc`])))) names.add("accuracy");
  const order = Object.keys(known);
  const last = order.indexOf("mrr");
  // Hits follow the mean of ranks, the lowest first.
  const at = (name) => (order.includes(name) ? order.indexOf(name) : hits(name) ? last + 1 - 1 / (1 + hits(name).at) : order.length);
  return [...names].sort((a, b) => at(a) - at(b)).slice(0, most).map(described);
}

// scored prints the metric by which an epoch, or a best one, is compared, with its name unless
// it is the accuracy.
export function scored(e, part) {
  const m = main([e]);
  const text = m.format(of(e, part, m.name));
  return m.name === "accuracy" || !Number.isFinite(of(e, part, m.name)) ? text : `${m.title} ${text}`;
}

// better orders the best epochs of models, the best first and those that have none last.
export function better(a, b) {
  const m = main([a, b]);
  const worst = m.lower ? Infinity : -Infinity;
  const [x, y] = [a, b].map((e) => of(e, "val", m.name) ?? worst);
  if (x === y) return 0;
  return (x < y) === Boolean(m.lower) ? -1 : 1;
}
