// One schedule as a chart: bars of every device, and below them what it holds.

const LANE = 30;
const MEMORY_LANE = 26;
const HEAD = 52;
const FOOT = 66;
const MARGIN = { l: 110, r: 20, t: HEAD, b: FOOT };
/** Bars beyond this are drawn only where the window shows them. */
const CALM = 1500;

class Chart {
  constructor(node, run) {
    Object.assign(this, { node, run, chosen: null, transfers: false, cycle: false });
    const kernel = run.sections.find((section) => section.name === "kernel");
    this.kernel = kernel && [run.at(kernel.begin), run.at(kernel.end)];
    this.window = this.#firstWindow();
    node.addEventListener("keydown", (event) => this.#press(event));
    // The page scrolls under the wheel; the chart zooms once it has been pressed.
    const calm = (event) => {
      if (document.activeElement !== node) event.stopPropagation();
    };
    node.addEventListener("wheel", calm, { capture: true, passive: true });
  }

  /** All of a short run; of a long one the beginning of the kernel. */
  #firstWindow() {
    const { run } = this;
    if (run.bars.length <= CALM || !this.kernel) return [run.begin, run.end];
    return [this.kernel[0], Math.min(this.kernel[1], this.kernel[0] + 2 * run.at(run.T))];
  }

  /** Named parts of the run, for buttons. */
  views() {
    const { run } = this;
    const views = [["whole run", [run.begin, run.end]]];
    for (const { name, begin, end } of run.sections) {
      if (["prologue", "kernel", "epilogue"].includes(name)) {
        views.push([name, [run.at(begin), run.at(end)]]);
      }
    }
    if (this.kernel) {
      const low = this.kernel[0];
      views.push(["one period", [low, low + run.at(run.T)]]);
    }
    return views;
  }

  async draw() {
    const config = { responsive: true, displaylogo: false, scrollZoom: true };
    const [traces, layout] = [this.#traces(), this.#layout()];
    this.node.style.height = `${layout.height}px`;
    const buttons = ["select2d", "lasso2d", "autoScale2d"];
    await Plotly.newPlot(this.node, traces, layout, {
      ...config,
      doubleClick: false,
      modeBarButtonsToRemove: buttons,
    });
    this.node.on("plotly_relayout", (change) => this.#moved(change));
    this.node.on("plotly_click", ({ points }) => this.#click(points[0]));
    this.node.on("plotly_doubleclick", () => this.show([this.run.begin, this.run.end]));
  }

  /** Draw again, such as after a change of window or of colours. */
  redraw() {
    return Plotly.react(this.node, this.#traces(), this.#layout());
  }

  show(window) {
    this.window = window;
    return this.redraw();
  }

  #moved(change) {
    const range = change["xaxis.range"] ?? [change["xaxis.range[0]"], change["xaxis.range[1]"]];
    if (range[0] === undefined) return;
    this.window = range.map(Number);
    this.redraw();
  }

  /** Choose a bar, or none (null): it, its operands and its users stand out. */
  choose(bar) {
    this.chosen = bar;
    this.node.dispatchEvent(new CustomEvent("chosen", { detail: bar }));
    if (bar === null) return this.#overlay();
    const { from, to } = this.run.bar(bar.op, bar.n);
    const [low, high] = this.window;
    if (from < high && to > low) return this.#overlay();
    const half = (high - low) / 2;
    return this.show([from - half, from + half]);
  }

  set({ transfers = this.transfers, cycle = this.cycle }) {
    Object.assign(this, { transfers, cycle });
    if (!cycle || !this.run.cycle.length) return this.#overlay();
    const turn = this.run.turn();
    const margin = this.run.at(this.run.T) / 10;
    const low = Math.min(...turn.map((bar) => bar.from)) - margin;
    return this.show([low, Math.max(...turn.map((bar) => bar.to)) + margin]);
  }

  #overlay() {
    return Plotly.relayout(this.node, { shapes: this.#shapes() });
  }

  #click(point) {
    if (point.data.yaxis === "y2") return;
    this.node.focus();
    this.choose(this.run.bars[point.customdata]);
  }

  #press(event) {
    const { bars, place } = this.run;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const lane = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = this.chosen && place.get(this.run.key(this.chosen.op, this.chosen.n));
    if (event.key === "Escape") this.choose(null);
    else if (step) this.choose(at == null ? this.#first() : bars[at + step] ?? this.chosen);
    else if (lane) this.choose(at == null ? this.#first() : this.#beside(bars[at], lane));
    else return;
    event.preventDefault();
  }

  #first() {
    return this.run.within(...this.window)[0] ?? this.run.bars[0];
  }

  /** The bar of the next lane that is nearest in time; the same one at the edge. */
  #beside(bar, step) {
    const near = (other) => Math.abs(other.from - bar.from);
    for (let lane = bar.op.lane + step; this.run.lanes[lane]; lane += step) {
      const bars = this.run.bars.filter((other) => other.op.lane === lane);
      if (bars.length) return bars.reduce((a, b) => (near(a) <= near(b) ? a : b));
    }
    return bar;
  }

  // -- what plotly is given ----------------------------------------------------------

  #traces() {
    const [low, high] = this.window;
    const { run } = this;
    const all = run.bars.length <= CALM;
    const margin = all ? Infinity : high - low;
    let bars = run.within(low - margin, high + margin);
    if (!all && bars.length > CALM) bars = run.within(low, high);
    const traces = run.kinds.map((kind) => this.#trace(kind, bars, this.pixels));
    return this.kernel ? [...traces, this.#memory()] : traces;
  }

  #trace(kind, bars, pixels) {
    const { run } = this;
    const own = bars.filter((bar) => bar.op.kind === kind.name);
    return {
      type: "bar",
      orientation: "h",
      name: kind.name,
      y: own.map((bar) => bar.op.lane),
      base: own.map((bar) => bar.from),
      x: own.map((bar) => bar.to - bar.from),
      width: FILL,
      marker: { color: kind.colour, line: { color: "#ffffff", width: 0.5 } },
      text: own.map((bar) => run.label(bar, (bar.to - bar.from) * pixels)),
      textposition: "inside",
      insidetextanchor: "middle",
      textangle: 0,
      constraintext: "none",
      insidetextfont: { color: "#1a1a1a", size: 11 },
      customdata: own.map((bar) => run.place.get(run.key(bar.op, bar.n))),
      hovertext: own.map((bar) => run.hover(bar)),
      hovertemplate: "%{hovertext}<extra></extra>",
    };
  }

  /** What each device holds in the kernel, one outline a device on a common scale. */
  #memory() {
    const { run } = this;
    const top = Math.max(1, ...run.memory.map((m) => Number(m.peak)));
    const [begin, end] = this.kernel;
    const period = run.at(run.T);
    const [x, y, text] = [[], [], []];
    run.memory.forEach(({ levels }, device) => {
      const base = device + 0.5;
      const add = (time, level, said) => {
        x.push(time);
        y.push(base - 0.9 * (Number(level) / top));
        text.push(said);
      };
      add(begin, 0, "");
      let last = 0;
      for (let low = begin; low < end - period / 2; low += period) {
        for (const [phase, level] of levels) {
          const said = BigInt(level).toLocaleString("en");
          add(low + run.at(phase), last, "");
          add(low + run.at(phase), level, `${plain(run.lanes[device].name)} holds ${said}`);
          last = level;
        }
      }
      add(end, last, "");
      add(end, 0, "");
      add(null, 0, "");
    });
    return {
      type: "scatter",
      mode: "lines",
      x,
      y,
      text,
      yaxis: "y2",
      fill: "toself",
      fillcolor: this.theme.shade,
      line: { color: this.theme.quiet, width: 1 },
      hovertemplate: `%{text} ${plain(run.sizeUnit)}<extra></extra>`,
      name: "memory in the steady state",
      showlegend: false,
    };
  }

  /** Pixels of one unit of the axis. */
  get pixels() {
    const { l, r } = MARGIN;
    return (this.node.clientWidth - l - r) / (this.window[1] - this.window[0]);
  }

  get theme() {
    return themeOf(document.documentElement);
  }

  #layout() {
    const { run, theme } = this;
    const lanes = run.lanes.length;
    const gantt = lanes * LANE;
    const memory = this.kernel ? run.memory.length * MEMORY_LANE : 0;
    const total = gantt + (memory && memory + 26);
    const names = run.lanes.map((lane) => plain(`${lane.name} ${lane.busy}`));
    const axis = { color: theme.ink, showgrid: false, zeroline: false, fixedrange: true,
      ticks: "outside", ticklen: 6, tickcolor: theme.ground };
    const layout = {
      barmode: "overlay",
      dragmode: "pan",
      hovermode: "closest",
      height: HEAD + total + FOOT,
      margin: MARGIN,
      paper_bgcolor: theme.ground,
      plot_bgcolor: theme.ground,
      font: { color: theme.ink, size: 12, family: "system-ui, sans-serif" },
      hoverlabel: { align: "left", bgcolor: theme.ground, font: { color: theme.ink } },
      legend: { orientation: "h", x: 0, y: -44 / total, yanchor: "top" },
      xaxis: {
        range: [...this.window],
        title: { text: plain(run.axis), standoff: 6 },
        color: theme.ink,
        gridcolor: theme.pale,
        zeroline: false,
        anchor: this.kernel ? "y2" : "y",
      },
      yaxis: {
        ...axis,
        domain: [1 - gantt / total, 1],
        range: [lanes - 0.5, -0.5],
        tickvals: names.map((_, i) => i),
        ticktext: names,
      },
      shapes: this.#shapes(),
      annotations: this.#names(),
    };
    if (!this.kernel) return layout;
    const held = run.memory.map((m, i) => plain(`${run.lanes[i].name} ${m.text}`));
    layout.yaxis2 = {
      ...axis,
      domain: [0, memory / total],
      range: [run.memory.length - 0.5, -0.5],
      tickvals: held.map((_, i) => i),
      ticktext: held,
      tickfont: { size: 10 },
    };
    return layout;
  }

  /** Lines in time, and all that is highlighted. */
  #shapes() {
    const { run, theme, window, pixels } = this;
    const shapes = this.#lines();
    if (this.transfers) shapes.push(...transferArrows(run, window, pixels, theme));
    if (this.cycle) shapes.push(...criticalCycle(run, window, pixels, theme));
    if (this.chosen) shapes.push(...neighbourhood(run, this.chosen, window, pixels, theme));
    return shapes;
  }

  /** The ends of the sections, and of the periods in the kernel. */
  #lines() {
    const { run, theme } = this;
    const line = (time, dash, width) => ({
      type: "line",
      xref: "x",
      yref: "paper",
      x0: time,
      x1: time,
      y0: 0,
      y1: 1,
      line: { color: theme.quiet, dash, width },
    });
    const ends = new Set(run.sections.flatMap((s) => [run.at(s.begin), run.at(s.end)]));
    const period = run.at(run.T);
    const count = this.kernel ? Math.round((this.kernel[1] - this.kernel[0]) / period) : 0;
    const inner = Array.from({ length: Math.max(0, count - 1) }, (_, i) => i + 1);
    return [
      ...[...ends].map((time) => line(time, "dash", 1)),
      ...inner.map((i) => line(this.kernel[0] + i * period, "dot", 0.7)),
    ];
  }

  /** Names of the sections that are in view. */
  #names() {
    const { run, theme } = this;
    const [low, high] = this.window;
    const sections = run.sections.map((s) => ({ ...s, from: run.at(s.begin), to: run.at(s.end) }));
    const shown = sections.filter((s) => s.from < high && s.to > low);
    return shown.map((section) => ({
      xref: "x",
      yref: "paper",
      x: (Math.max(section.from, low) + Math.min(section.to, high)) / 2,
      y: 1,
      yanchor: "bottom",
      showarrow: false,
      text: plain(section.name),
      font: { color: theme.ink, size: 12 },
    }));
  }
}
