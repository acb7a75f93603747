// Requests to the daemon that served the page. They read, but for the forecast, which changes nothing.

// Refused is an answer of the daemon that says no: it is there.
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

const patience = 10_000; // milliseconds that an answer may take

// get returns an answer's JSON. It throws Refused if the daemon refuses, and anything else if
// it does not answer.
export async function get(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(patience) });
  if (!answer.ok) throw await refusal(answer);
  return answer.json();
}

async function refusal(answer) {
  const body = await answer.json().catch(() => ({}));
  return new Refused(answer.status, typeof body.error === "string" ? body.error : `the daemon answers ${answer.status}`);
}

// lines calls take with each object of a stream, until that ends or signal does.
export async function lines(path, signal, take, request = {}) {
  const answer = await fetch(path, { cache: "no-store", signal, ...request });
  if (!answer.ok) throw await refusal(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const line of parts) {
      if (line.trim() !== "") take(JSON.parse(line));
    }
  }
}

// Pause is how long to wait after each failure: longer each time, up to some seconds, and never
// quite as long as other pages wait.
export class Pause {
  constructor(least = 250, most = 5000) {
    this.least = least;
    this.most = most;
    this.reset();
  }

  reset() {
    this.wait = this.least;
  }

  next() {
    const now = this.wait * (0.75 + Math.random() / 2);
    this.wait = Math.min(this.most, this.wait * 2);
    return now;
  }
}

// Stream follows a stream of the API, and begins again whenever it ends.
export class Stream {
  constructor(path, take) {
    this.path = path;
    this.take = take;
    this.stopping = null;
  }

  start() {
    if (this.stopping) return;
    this.stopping = new AbortController();
    this.run(this.stopping.signal);
  }

  stop() {
    this.stopping?.abort();
    this.stopping = null;
  }

  async run(signal) {
    const pause = new Pause();
    while (!signal.aborted) {
      try {
        await lines(this.path, signal, (line) => {
          pause.reset();
          if (!signal.aborted && this.take(line) === false) this.stopping?.abort();
        });
      } catch (err) {
        if (err instanceof Refused && err.status === 404) return;
      }
      if (!signal.aborted) await sleep(pause.next());
    }
  }
}

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
