// Charts of the epochs of a job, drawn as SVG.

import { h, svg } from "./dom.js";
import { bytes, unitOf } from "./format.js";

const width = 280;
const height = 150;
const left = 48;
const right = 8;
const top = 8;
const bottom = 20;
const mostPoints = 300; // of a curve: more are not seen
const mostBars = 32;

// axis returns the round numbers at or between low and high, or the round multiples of a unit.
function axis(low, high, about = 4, unit = 1) {
  const raw = (high - low) / about / unit || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= raw * 0.999) * unit;
  const ticks = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; v <= high + step * 1e-6 && ticks.length < 20; v += step) ticks.push(v);
  return ticks;
}

// frame draws axes and what is between them.
function frame(name, title, x, y, yFormat, inside, legend, note) {
  const unit = yFormat === bytes ? unitOf(y.high) : 1;
  const rows = axis(y.low, y.high, 4, unit).map((v) => {
    const at = y.at(v).toFixed(1);
    return [svg("line", { class: "grid", x1: left, x2: width - right, y1: at, y2: at }),
      svg("text", { class: "tick end", x: left - 5, y: Number(at) + 3 }, yFormat(v))];
  });
  const columns = axis(x.low, x.high, 5).filter((v) => Number.isInteger(v) && v > 0).map((v) =>
    svg("text", { class: "tick mid", x: x.at(v).toFixed(1), y: height - 6 }, v));
  return h("figure", { key: name, id: `chart-${name}` },
    h("figcaption", null, title),
    svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: ${note}` }, rows, columns, inside),
    h("ul", { class: "legend" }, legend.map((l) =>
      h("li", null, h("span", { class: `swatch ${l.colour}`, "aria-hidden": "true" }), `${l.name} `, h("b", null, l.value)))));
}

// scale maps low to high onto pixels.
function scale(low, high, from, to) {
  const span = high - low || 1;
  return { low, high, at: (v) => from + ((v - low) / span) * (to - from) };
}

function thinned(points) {
  if (points.length <= mostPoints) return points;
  const step = (points.length - 1) / (mostPoints - 1);
  return Array.from({ length: mostPoints }, (_, i) => points[Math.round(i * step)]);
}

// curves draws lines over epochs. A series has a name, a colour (a class) and points, each an
// epoch and a value; what has no value is left out.
export function curves({ name, title, series, format, low, high }) {
  const drawn = series.map((s) => ({ ...s, points: s.points.filter((p) => Number.isFinite(p[1])) })).filter((s) => s.points.length > 0);
  if (drawn.length === 0) return null;
  let xs = [Infinity, 0];
  let ys = [low ?? Infinity, high ?? -Infinity];
  for (const s of drawn) {
    for (const [x, y] of s.points) {
      xs = [Math.min(xs[0], x), Math.max(xs[1], x)];
      ys = [Math.min(ys[0], y), Math.max(ys[1], y)];
    }
  }
  if (ys[0] === ys[1]) ys = [ys[0] - 0.5, ys[1] + 0.5];
  const x = scale(xs[0], Math.max(xs[1], xs[0] + 1), left, width - right);
  const y = scale(ys[0], ys[1], height - bottom, top);
  const inside = drawn.map((s) => [
    svg("polyline", { class: `curve ${s.colour}`, points: thinned(s.points).map((p) => `${x.at(p[0]).toFixed(1)},${y.at(p[1]).toFixed(1)}`).join(" ") }),
    svg("circle", { class: `dot ${s.colour}`, r: 2.5, cx: x.at(s.points.at(-1)[0]).toFixed(1), cy: y.at(s.points.at(-1)[1]).toFixed(1) }),
  ]);
  const legend = drawn.map((s) => ({ name: s.name, colour: s.colour, value: format(s.points.at(-1)[1]) }));
  return frame(name, title, x, y, format, inside, legend, legend.map((l) => `${l.name} ${l.value}`).join(", "));
}

// stacks draws a bar an epoch, of parts on top of each other. With many epochs a bar is the mean
// of several. A part has a name, a colour and a function that takes it from an epoch.
export function stacks({ name, title, epochs, parts, format }) {
  if (epochs.length === 0) return null;
  const each = Math.ceil(epochs.length / mostBars);
  const bars = [];
  for (let i = 0; i < epochs.length; i += each) {
    const some = epochs.slice(i, i + each);
    bars.push({ from: some[0].epoch, values: parts.map((p) => some.reduce((sum, e) => sum + (p.of(e) || 0), 0) / some.length) });
  }
  const used = parts.map((_, k) => bars.some((b) => b.values[k] > 0));
  const most = Math.max(...bars.map((b) => b.values.reduce((a, v) => a + v, 0)));
  const y = scale(0, most || 1, height - bottom, top);
  const wide = (width - left - right) / bars.length;
  const first = epochs[0].epoch;
  const x = { low: first, high: epochs.at(-1).epoch, at: (v) => left + ((v - first) / each + 0.5) * wide };
  const inside = bars.map((b, i) => {
    let sum = 0;
    return b.values.map((v, k) => {
      if (!(v > 0)) return null;
      const from = y.at(sum);
      sum += v;
      return svg("rect", { class: `bar ${parts[k].colour}`, x: (left + i * wide + wide * 0.1).toFixed(2), width: (wide * 0.8).toFixed(2), y: y.at(sum).toFixed(2), height: Math.max(0, from - y.at(sum)).toFixed(2) });
    });
  });
  const last = epochs.at(-1);
  const legend = parts.map((p, k) => ({ name: p.name, colour: p.colour, value: format(p.of(last) || 0) })).filter((_, k) => used[k]);
  const whole = each > 1 ? `${title}, a bar for ${each} epochs` : title;
  return frame(name, whole, x, y, format, inside, legend, legend.map((l) => `${l.name} ${l.value}`).join(", "));
}

// meter draws how much of a whole something is; mark is a second value.
export function meter(label, value, whole, mark) {
  const at = (v) => (100 * Math.min(1, Math.max(0, v / whole))).toFixed(1);
  return svg("svg", { class: "meter", viewBox: "0 0 100 6", preserveAspectRatio: "none", role: "img", "aria-label": label },
    svg("rect", { class: "track", width: 100, height: 6 }),
    svg("rect", { class: value > whole ? "full over" : "full", width: at(value), height: 6 }),
    mark > 0 && svg("rect", { class: "mark", x: Math.max(0, at(mark) - 0.5), width: 1, height: 6 }));
}

// pipeline draws stages, left to right, of each way.
export function pipeline(stages, ways, layers) {
  if (!(stages >= 1 && ways >= 1) || stages > 64 || ways > 64) return null;
  const wide = width / stages;
  const tall = 34;
  const boxes = [];
  for (let w = 0; w < ways; w++) {
    for (let s = 0; s < stages; s++) {
      const x = s * wide + 6;
      const y = w * (tall + 8) + 4;
      boxes.push(svg("rect", { class: `stage c${s % 8}`, x, y, width: Math.max(4, wide - 24), height: tall, rx: 4 }));
      if (wide > 70) boxes.push(svg("text", { class: "tick mid", x: x + (wide - 24) / 2, y: y + 21 }, `stage ${s + 1}`));
      if (s + 1 < stages) boxes.push(svg("path", { class: "arrow", d: `M${x + wide - 22} ${y + tall / 2}h14m-4 -4l4 4l-4 4` }));
    }
  }
  const title = `Pipeline: ${stages} ${stages === 1 ? "stage" : "stages"} of ${layers ?? "the"} layers, ${ways} ${ways === 1 ? "way" : "ways"}`;
  return h("figure", { key: "pipeline", id: "chart-pipeline" },
    h("figcaption", null, title),
    svg("svg", { viewBox: `0 0 ${width} ${ways * (tall + 8) + 4}`, role: "img", "aria-label": title }, boxes));
}
