// Keeps what is known of the mesh and draws it. What changes fast comes by streams, the rest is
// asked for when an event says that it may have changed, and every two seconds.

import { get, Pause, Refused, sleep, Stream } from "./api.js";
import { datasets } from "./datasets.js";
import { render } from "./dom.js";
import { forecast } from "./forecast.js";
import { clock } from "./format.js";
import { jobs } from "./jobs.js";
import { events, log, mesh, problems, summary } from "./mesh.js";

const every = 2000; // milliseconds between two looks
const mostLines = 200; // of events and of the log
const openAtFirst = 3; // datasets

const state = {
  status: null, members: null, vitals: null, plan: null, datasets: null, jobs: null,
  job: null, selected: "", progress: null,
  open: new Set(), met: new Set(), shown: new Map(), // names of datasets
  forecast: { busy: false, needsSecret: false, error: "", rows: [], assumptions: [] },
  events: [], log: [], refused: {},
  since: null, // when the daemon last stopped answering
};

const parts = [["#summary", summary], ["#problems", problems], ["#mesh .body", mesh], ["#jobs .body", jobs],
  ["#datasets .body", (s) => datasets(s, show)], ["#forecast .body", (s) => forecast(s, changed)], ["#events .body", events], ["#log .body", log]]
  .map(([where, draw]) => [document.querySelector(where), draw]);

let drawing = 0;

// changed draws soon: not for each of many changes.
function changed() {
  drawing ||= setTimeout(() => {
    drawing = 0;
    for (const [where, draw] of parts) render(where, draw(state));
    document.title = state.status?.node ? `${state.status.node} – hopmesh` : "hopmesh";
    if (state.status && !performance.getEntriesByName("drawn").length) performance.mark("drawn"); // how long it took to open
  }, 50);
}

// connection says whether what is shown is current.
function connection(text) {
  render(document.querySelector("#connection"), text);
  document.body.classList.toggle("stale", state.since !== null);
}

// ask fills a part of the state. A refusal is a problem to show; that nobody answers is thrown.
async function ask(part, path) {
  try {
    state[part] = await get(path);
    delete state.refused[part];
  } catch (err) {
    if (!(err instanceof Refused)) throw err;
    state.refused[part] = err.message;
  }
}

let vitalsBusy = false;

// vitals asks how the nodes are. A slow node keeps the answer back, and nothing else waits for it.
async function vitals() {
  if (vitalsBusy) return;
  vitalsBusy = true;
  try {
    await ask("vitals", "/v1/vitals");
    changed();
  } catch {
    state.vitals = null; // look says so
  }
  vitalsBusy = false;
}

async function look() {
  vitals();
  await Promise.all([ask("status", "/v1/status"), ask("members", "/v1/members"), ask("plan", "/v1/plan"), ask("datasets", "/v1/datasets"), ask("jobs", "/v1/jobs")]);
  for (const { name } of state.datasets || []) {
    if (!state.met.has(name) && state.met.size < openAtFirst) state.open.add(name);
    state.met.add(name);
  }
  await Promise.all([...state.open].map(shards));
  select();
}

async function shards(name) {
  try {
    state.shown.set(name, await get(`/v1/datasets/${encodeURIComponent(name)}`));
  } catch (err) {
    if (!(err instanceof Refused)) throw err;
    state.shown.delete(name);
    state.open.delete(name);
  }
}

function show(name, open) {
  if (open === state.open.has(name)) return;
  if (open) state.open.add(name);
  else state.open.delete(name);
  wake();
}

// The job that is shown: the one in the address, else the newest that runs, else the newest.
let watch = null;

function select() {
  const list = state.jobs || [];
  const job = list.find((j) => location.hash === `#${encodeURIComponent(j.id)}`) || list.findLast((j) => j.state === "running") || list.at(-1);
  const id = job?.id || "";
  if (id !== state.selected) {
    state.selected = id;
    state.job = state.progress = null;
    watch?.stop();
    watch = null;
  }
  if (job && outdated(job, state.job)) load();
  if (job && !watch && !ended(job.state)) {
    watch = new Stream(`/v1/jobs/${encodeURIComponent(id)}/watch`, (line) => follow(id, line));
    if (running) watch.start();
  }
}

const ended = (s) => s === "done" || s === "failed" || s === "stopped";

// outdated reports whether a job's line in the list says that more of it has changed than its
// stream brings.
function outdated(line, job) {
  return !job || job.state !== line.state || job.problems.length > 0 && !ended(line.state) || String(job.nodes) !== String(line.nodes);
}

let loadAgain = false;
let loadBusy = false;

// load asks for the whole job. While one answer is under way, at most one more is asked for, and
// that after a pause as long as the answer took: histories may be long.
async function load() {
  loadAgain = true;
  if (loadBusy) return;
  loadBusy = true;
  while (loadAgain && state.selected) {
    loadAgain = false;
    const id = state.selected;
    const begun = performance.now();
    try {
      const job = await get(`/v1/jobs/${encodeURIComponent(id)}`);
      if (id === state.selected) state.job = job;
      changed();
    } catch {
      break; // the next look tries again
    }
    await sleep(Math.max(200, performance.now() - begun));
  }
  loadBusy = false;
}

// follow takes a line of the job's stream. It returns false after the last.
function follow(id, line) {
  if (id !== state.selected) return false;
  if (line.progress) state.progress = line.progress;
  if (line.epoch) epoch(line.epoch);
  if (line.end) {
    state.job = line.end;
    state.progress = null;
  }
  if (line.state || line.note || line.error) load();
  changed();
  if (!line.end) return true;
  watch = null;
  wake();
  return false;
}

function epoch(e) {
  const job = state.job;
  const last = job?.history.at(-1)?.epoch || 0;
  if (!job || e.epoch > last + 1 || e.epoch < last || job.models.length > 0) load(); // some are missing, or it began anew
  if (!job) return;
  if (e.epoch === last) job.history[job.history.length - 1] = e;
  else if (e.epoch > last) job.history.push(e);
}

// Lines of events and of the log, the newest first.
let lineNumber = 0;

function keep(list, line) {
  list.unshift({ ...line, key: ++lineNumber });
  if (list.length > mostLines) list.length = mostLines;
  changed();
}

const happening = new Stream("/v1/events", (e) => {
  keep(state.events, e);
  wake();
});
const logging = new Stream("/v1/monitor", (l) => keep(state.log, l));
const logBox = document.querySelector("#log details");
logBox.ontoggle = () => (logBox.open && running ? logging.start() : logging.stop());

// The loop. It rests while nobody sees the page: browsers allow few connections to a daemon, over
// all of its pages.
let running = false;
let rested = null;
let woken = false; // since the last look began

function wake() {
  woken = true;
  rested?.();
}

const rest = (ms) => woken || new Promise((done) => {
  const timer = setTimeout(done, ms);
  rested = () => {
    clearTimeout(timer);
    done();
  };
});

function streams(on) {
  running = on;
  for (const s of [happening, watch, logBox.open ? logging : null]) {
    if (on) s?.start();
    else s?.stop();
  }
}

async function run() {
  const pause = new Pause();
  for (;;) {
    if (document.hidden) {
      streams(false);
      await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
      continue;
    }
    let wait = every;
    try {
      woken = false;
      await look();
      pause.reset();
      if (state.since !== null) keep(state.events, { time: new Date().toISOString(), type: "page", node: "", message: "the daemon answers again" });
      state.since = null;
      connection(`Live from ${location.host}`);
      if (!running) streams(true);
    } catch {
      // Streams end by themselves, but may not notice: they begin anew with the daemon.
      streams(false);
      state.since ||= new Date().toISOString();
      wait = pause.next();
      connection(`The daemon at ${location.host} has not answered since ${clock(state.since)}: what follows was so before. Trying again.`);
    }
    changed();
    // A burst of events is one reason to look.
    if (wait === every) await sleep(100);
    await rest(wait);
  }
}

addEventListener("hashchange", () => {
  select();
  changed();
});
connection("Connecting.");
run();
