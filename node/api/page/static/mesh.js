// The mesh: what is wrong, its nodes, events and the log.

import { h } from "./dom.js";
import { bytes, clock, plural, seconds, sentence } from "./format.js";

export function summary(state) {
  const s = state.status;
  if (!s) return null;
  return h("dl", { class: "facts" },
    fact("Node", s.node || "in no mesh yet"), fact("Leader", s.leader || "none known"),
    fact("Generation", s.generation), fact("Ready", s.ready ? "yes" : "no"),
    fact("Running", plural(s.jobs, "job")));
}

export const fact = (name, ...value) => h("div", { key: name }, h("dt", null, name), h("dd", null, value));

// problems are what the API names, and who does not answer. They come before all else.
export function problems(state) {
  const found = [];
  const silent = (state.status?.problems || []).find((p) => typeof p === "string" && p.startsWith("not answering")) || "";
  for (const m of state.members || []) {
    // The daemon says so itself some seconds later.
    if (m.status === "failed" && !silent.includes(m.name)) found.push(`Node ${m.name} does not answer.`);
    if (m.unlike) found.push(sentence(`Node ${m.name} ${m.unlike}`));
  }
  for (const p of state.status?.problems || []) {
    if (typeof p === "string") found.push(sentence(p));
    else found.push(sentence(`${p.kind} of node ${p.node}: ${p.what}${p.repaired ? " (repaired)" : ""}`));
  }
  for (const [what, message] of Object.entries(state.refused)) found.push(sentence(`${what}: ${message}`));
  if (found.length === 0) return state.status ? h("p", { class: "well" }, "No problems.") : null;
  const shown = found.slice(0, 8);
  const more = found.slice(8);
  return [h("h2", null, plural(found.length, "problem")),
    h("ul", { class: "list" }, shown.map((p) => h("li", null, p))),
    more.length > 0 && h("details", { key: "more" }, h("summary", null, `${more.length} more`), h("ul", null, more.map((p) => h("li", null, p))))];
}

export function mesh(state) {
  if (!state.members) return h("p", { class: "quiet" }, "Nothing is known of the mesh yet.");
  const planned = new Map((state.plan?.members || []).map((m) => [m.id, m]));
  const vitals = new Map((state.vitals || []).map((v) => [v.id, v]));
  return h("ul", { class: "cards" }, state.members.map((m) => {
    const p = planned.get(m.id);
    return h("li", { key: m.id, class: `card node ${m.status}`, "data-node": m.name, "data-status": m.status },
      h("h3", null, m.name, " ", h("span", { class: `badge ${m.status}` }, m.status), m.role === "leader" && h("span", { class: "badge" }, "leader")),
      h("dl", { class: "facts" },
        fact("Role", m.role, p?.leaving ? ", leaving" : ""), fact("Device", m.device || "–"),
        fact("Memory", memory(vitals.get(m.id), p)), fact("Shards", m.shards),
        fact("Address", m.address || "–"), fact("Version", m.version || "–")),
      links(vitals.get(m.id)));
  }));
}

// memory is what a node takes, beside what it may.
function memory(v, planned) {
  const bound = v?.memory_bound || planned?.memory || 0;
  if (!v?.memory_used) return bound ? `at most ${bytes(bound)}` : "not bounded";
  if (!bound) return `${bytes(v.memory_used)}, not bounded`;
  return [`${bytes(v.memory_used)} of ${bytes(bound)} `, h("meter", { min: 0, max: bound, value: Math.min(v.memory_used, bound), high: 0.9 * bound })];
}

const mostLinks = 5;

// links are a node's busiest connections.
function links(v) {
  if (!v || v.links.length === 0) return null;
  const all = [...v.links].sort((a, b) => b.sent_per_second + b.received_per_second - a.sent_per_second - a.received_per_second || a.to.localeCompare(b.to));
  return h("ul", { class: "links" }, all.slice(0, mostLinks).map((l) => h("li", { key: `to ${l.to}`, "data-link": l.to, title: "sent, received and round trip" },
    `${l.to} ↑ ${bytes(l.sent_per_second)}/s ↓ ${bytes(l.received_per_second)}/s`, l.rtt_seconds ? `, ${seconds(l.rtt_seconds)}` : "")),
    all.length > mostLinks && h("li", { key: "more" }, `and ${plural(all.length - mostLinks, "slower link")}`));
}

export function events(state) {
  if (state.events.length === 0) return h("p", { class: "quiet" }, "Nothing has happened since this page was opened.");
  return h("ol", { class: "log" }, state.events.map((e) =>
    h("li", { key: e.key }, h("time", { datetime: e.time }, clock(e.time)), " ", h("span", { class: "badge" }, e.type), " ", e.node, e.node ? ": " : "", e.message)));
}

export function log(state) {
  if (state.log.length === 0) return h("p", { class: "quiet" }, "Nothing was logged since this was opened.");
  return h("ol", { class: "log" }, state.log.map((l) =>
    h("li", { key: l.key }, h("time", { datetime: l.time }, clock(l.time)), " ", h("span", { class: `badge ${String(l.level).toLowerCase()}` }, l.level), " ", l.message,
      Object.entries(l.attrs || {}).map(([k, v]) => ` ${k}=${v}`))));
}
