// What is drawn over the bars: a veil, the bars that matter, arrows between them. All of
// it is shapes, which plotly draws anew without touching the bars; annotations are not.

const FILL = 0.86;
const MOST_ARROWS = 400;
/** Pixels of an arrow's head along and across it. */
const HEAD_LENGTH = 8;
const HEAD_WIDTH = 4;

/** A bar that stands out, with its name where that fits. */
function rectangle(run, bar, pixels, line) {
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
    label: {
      text: run.label(bar, (bar.to - bar.from) * pixels),
      font: { size: 11, color: "#1a1a1a" },
    },
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
function arrow([low, high], from, to, src, dst, pixels, colour) {
  const clamp = (time) => Math.min(high, Math.max(low, time));
  const [x0, x1] = [clamp(from), clamp(to)];
  const [dx, dy] = [(x1 - x0) * pixels, (dst - src) * LANE];
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const point = (along, across) => {
    const x = x1 + (-along * ux - across * uy) / pixels;
    return `${x},${dst + (-along * uy + across * ux) / LANE}`;
  };
  const head = `M${point(HEAD_LENGTH, HEAD_WIDTH)}L${x1},${dst}L${point(HEAD_LENGTH, -HEAD_WIDTH)}`;
  return {
    type: "path",
    xref: "x",
    yref: "y",
    path: `M${x0},${src}L${x1},${dst}${head}`,
    line: { color: colour, width: 1.4 },
  };
}

/** The chosen bar with its operands (dashed) and its users (dotted). */
function neighbourhood(run, bar, window, pixels, theme) {
  const { before, after } = run.neighbours(bar);
  const own = run.bar(bar.op, bar.n);
  const line = (width, dash) => ({ width, dash, color: theme.ink });
  const lead = (a, b) =>
    arrow(window, a.to, b.from, a.op.lane, b.op.lane, pixels, theme.ink);
  return [
    veil(theme),
    ...before.map((b) => rectangle(run, b, pixels, line(2, "dash"))),
    ...after.map((b) => rectangle(run, b, pixels, line(2, "dot"))),
    rectangle(run, own, pixels, line(3, "solid")),
    ...before.map((b) => lead(b, own)),
    ...after.map((b) => lead(own, b)),
  ];
}

/** One turn of the critical cycle. */
function criticalCycle(run, window, pixels, theme) {
  const steps = run.turn();
  const line = { width: 3, color: theme.alarm };
  const lead = (a, b) =>
    arrow(window, a.to, b.from, a.op.lane, b.op.lane, pixels, theme.alarm);
  return [
    veil(theme),
    ...steps.map((bar) => rectangle(run, bar, pixels, line)),
    ...steps.slice(1).map((bar, i) => lead(steps[i], bar)),
  ];
}

/** Arrows for the tensors sent in the window, the first ones. */
function transferArrows(run, window, pixels, theme) {
  const found = run.transfers(...window).slice(0, MOST_ARROWS);
  return found.map(({ from, to, src, dst }) =>
    arrow(window, from, to, src, dst, pixels, theme.ink),
  );
}
