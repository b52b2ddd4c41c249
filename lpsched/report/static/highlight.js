// What is drawn over the bars: a veil, the bars that matter, arrows between them.
// Shapes and annotations only, which plotly redraws without touching the bars.

const FILL = 0.86;
const MOST_ARROWS = 400;

function rectangle(run, bar, line) {
  const colour = run.kinds.find((kind) => kind.name === bar.op.kind)?.colour;
  return {
    type: "rect",
    xref: "x",
    yref: "y",
    x0: bar.from,
    x1: bar.to,
    y0: bar.op.lane - FILL / 2,
    y1: bar.op.lane + FILL / 2,
    fillcolor: colour ?? "#b0b0b0",
    line,
  };
}

function veil(theme) {
  return {
    type: "rect",
    xref: "paper",
    yref: "y domain",
    x0: 0,
    x1: 1,
    y0: 0,
    y1: 1,
    fillcolor: theme.ground,
    opacity: 0.72,
    line: { width: 0 },
  };
}

/** An arrow between lanes; what lies outside the window ends at its edge. */
function arrow([low, high], from, to, src, dst, colour) {
  const clamp = (time) => Math.min(high, Math.max(low, time));
  return {
    xref: "x",
    yref: "y",
    axref: "x",
    ayref: "y",
    ax: clamp(from),
    ay: src,
    x: clamp(to),
    y: dst,
    text: "",
    showarrow: true,
    arrowhead: 2,
    arrowsize: 1.1,
    arrowwidth: 1.4,
    arrowcolor: colour,
  };
}

/** The name of a bar that stands out, where it fits. */
function caption(run, bar, pixels) {
  return {
    xref: "x",
    yref: "y",
    x: (bar.from + bar.to) / 2,
    y: bar.op.lane,
    text: run.label(bar, (bar.to - bar.from) * pixels),
    showarrow: false,
    font: { size: 11, color: "#1a1a1a" },
  };
}

/** The chosen bar with its operands (dashed) and its users (dotted). */
function neighbourhood(run, bar, window, pixels, theme) {
  const { before, after } = run.neighbours(bar);
  const own = run.bar(bar.op, bar.n);
  const line = (width, dash) => ({ width, dash, color: theme.ink });
  const lead = (a, b) => arrow(window, a.to, b.from, a.op.lane, b.op.lane, theme.ink);
  const shown = [own, ...before, ...after].filter(
    (b) => b.from >= window[0] && b.to <= window[1],
  );
  return {
    shapes: [
      veil(theme),
      ...before.map((b) => rectangle(run, b, line(2, "dash"))),
      ...after.map((b) => rectangle(run, b, line(2, "dot"))),
      rectangle(run, own, line(3, "solid")),
    ],
    annotations: [
      ...before.map((b) => lead(b, own)),
      ...after.map((b) => lead(own, b)),
      ...shown.map((b) => caption(run, b, pixels)),
    ],
  };
}

/** One turn of the critical cycle. */
function criticalCycle(run, window, theme) {
  const steps = run.turn();
  const line = { width: 3, color: theme.alarm };
  const lead = (a, b) => arrow(window, a.to, b.from, a.op.lane, b.op.lane, theme.alarm);
  return {
    shapes: [veil(theme), ...steps.map((bar) => rectangle(run, bar, line))],
    annotations: steps.slice(1).map((bar, i) => lead(steps[i], bar)),
  };
}

/** Arrows for the tensors sent in the window, the first ones. */
function transferArrows(run, window, theme) {
  const found = run.transfers(...window).slice(0, MOST_ARROWS);
  return {
    shapes: [],
    annotations: found.map(({ from, to, src, dst }) =>
      arrow(window, from, to, src, dst, theme.ink),
    ),
  };
}
