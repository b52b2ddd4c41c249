// A schedule unrolled: which run of which op stands where. Times are exact (BigInt);
// only what is drawn is rounded.

/** Text that plotly, which understands some HTML, shows as it is. */
function plain(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };
  return String(text).replace(/[&<>]/g, (c) => entities[c]);
}

class Run {
  constructor(data) {
    Object.assign(this, data);
    this.T = BigInt(data.period);
    this.ops = data.ops.map((op, index) => ({
      ...op,
      index,
      begin: BigInt(op.start),
      ticks: BigInt(op.duration),
    }));
    this.edges = data.edges.map(([src, dst, delay, transfer, tensor]) => ({
      src: this.ops[src],
      dst: this.ops[dst],
      delay,
      transfer: BigInt(transfer),
      tensor,
    }));
    this.bars = this.#unroll();
    this.place = new Map(this.bars.map((bar, i) => [this.key(bar.op, bar.n), i]));
    this.begin = Math.min(...data.sections.map((s) => this.at(s.begin)));
    this.end = Math.max(...data.sections.map((s) => this.at(s.end)));
  }

  key(op, n) {
    return `${op.index}:${n}`;
  }

  /** Ticks as a place on the axis. */
  at(ticks) {
    return Number(ticks) / Number(this.factor);
  }

  /** Start of iteration n of an op, in ticks. */
  start(op, n) {
    return op.begin + BigInt(n) * this.T;
  }

  /** Iteration n of an op, as it is drawn. */
  bar(op, n) {
    const start = this.start(op, n);
    return { op, n, from: this.at(start), to: this.at(start + op.ticks) };
  }

  has(n) {
    return 0 <= n && n < this.iterations;
  }

  #unroll() {
    const bars = [];
    for (const op of this.ops) {
      if (op.ticks === 0n) continue; // it occupies nothing
      for (let n = 0; n < this.iterations; n += 1) bars.push(this.bar(op, n));
    }
    return bars.sort((a, b) => a.op.lane - b.op.lane || a.from - b.from);
  }

  /** Bars that touch a stretch of the axis. */
  within(low, high) {
    return this.bars.filter((bar) => bar.to > low && bar.from < high);
  }

  /** Operands of iteration n of an op, and who uses what it makes. */
  neighbours({ op, n }) {
    const before = this.edges.filter((e) => e.dst === op && this.has(n - e.delay));
    const after = this.edges.filter((e) => e.src === op && this.has(n + e.delay));
    return {
      before: before.map((edge) => ({ edge, ...this.bar(edge.src, n - edge.delay) })),
      after: after.map((edge) => ({ edge, ...this.bar(edge.dst, n + edge.delay) })),
    };
  }

  /** Tensors sent between devices: where each leaves and where it arrives. */
  transfers(low, high) {
    const found = new Map();
    for (const { src, dst, delay, transfer, tensor } of this.edges) {
      if (tensor === null || src.lane === dst.lane) continue;
      for (let n = 0; this.has(n) && this.has(n + delay); n += 1) {
        const from = this.bar(src, n).to;
        const to = this.at(this.start(src, n) + src.ticks + transfer);
        if (from < low || to > high) continue;
        found.set(`${tensor}:${n}:${dst.lane}`, { from, to, src: src.lane, dst: dst.lane });
      }
    }
    return [...found.values()];
  }

  /** One turn of the critical cycle: bars, each waiting for the one before. */
  turn() {
    if (!this.cycle.length) return [];
    let n = 0;
    const steps = this.cycle.map(([op, delay]) => {
      const step = { op: this.ops[op], n };
      n += delay;
      return step;
    });
    steps.push({ op: this.ops[this.cycle[0][0]], n });
    const numbers = steps.map((step) => step.n);
    const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
    const shift = Math.max(0, Math.floor((this.iterations - 1 - (high - low)) / 2)) - low;
    return steps
      .filter((step) => this.has(step.n + shift))
      .map((step) => this.bar(step.op, step.n + shift));
  }

  /** What is shown under the pointer; figures are exact. */
  hover({ op, n }) {
    const unit = this.unit;
    const iteration = op.microbatch === null ? "" : `, microbatch ${op.microbatch}`;
    return [
      `<b>${plain(op.id)}</b> (${plain(op.kind)})`,
      `layer ${plain(op.layer)}, device ${plain(this.lanes[op.lane].name)}`,
      `iteration ${n}${iteration}, lap ${op.lap}`,
      `start ${this.start(op, n).toLocaleString("en")} ${plain(unit)}`,
      `duration ${op.ticks.toLocaleString("en")} ${plain(unit)}`,
      `may move ${op.earlier} earlier, ${op.later} later`,
      `waits for ${plain(op.waits)}`,
    ].join("<br>");
  }

  /** The richest label that fits in so many pixels. */
  label({ op, n }, pixels) {
    const short = op.microbatch === null ? `${n}` : `${op.microbatch}`;
    const texts = [`${op.id} ${n}`, op.id, short];
    const text = texts.find((t) => 6.6 * t.length + 6 <= pixels);
    return text === undefined ? "" : plain(text);
  }
}
