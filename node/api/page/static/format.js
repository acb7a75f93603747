// Numbers as people read them. What is null or no number is a dash.

const dash = "–";

const number = (v) => typeof v === "number" && Number.isFinite(v);

// unitOf returns the unit in which so many bytes are printed.
export function unitOf(v) {
  let unit = 1;
  while (v >= 1024 * unit && unit < 1024 ** 5) unit *= 1024;
  return unit;
}

export function bytes(v) {
  if (!number(v)) return dash;
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  const unit = unitOf(v);
  const inUnits = v / unit;
  return `${unit === 1 || inUnits >= 100 ? Math.round(inUnits) : inUnits.toFixed(1)} ${units[Math.log2(unit) / 10]}`;
}

export function seconds(v) {
  if (!number(v)) return dash;
  if (v === 0) return "0 s";
  if (v < 1e-3) return `${(v * 1e6).toFixed(0)} µs`;
  if (v < 1) return `${(v * 1e3).toFixed(v < 0.01 ? 1 : 0)} ms`;
  if (v < 120) return `${v.toFixed(v < 10 ? 2 : 1)} s`;
  const whole = Math.round(v);
  if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${(v / 3600).toFixed(1)} h`;
}

export const share = (v) => (number(v) ? `${(100 * v).toFixed(1)} %` : dash);

export const count = (v) => (number(v) ? v.toLocaleString("en") : dash);

// figure prints a loss or another number of any size in few digits.
export function figure(v) {
  if (!number(v)) return dash;
  const size = Math.abs(v);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return v.toExponential(1);
  return v.toFixed(size < 1 ? 3 : size < 100 ? 2 : 0);
}

export function plural(n, one, many = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : many}`;
}

// clock prints the time of a timestamp on this machine's clock.
export function clock(time) {
  const t = new Date(time);
  return Number.isNaN(t.getTime()) ? dash : t.toLocaleTimeString("en-GB");
}

export const list = (names) => (names && names.length ? names.join(", ") : dash);

// sentence begins and ends a sentence of the API, which has no full stop.
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
