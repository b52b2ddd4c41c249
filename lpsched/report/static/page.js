// The page comes to life: tables sort, charts are drawn when they come into view.

function themeOf(element) {
  const style = getComputedStyle(element);
  const names = ["ink", "ground", "quiet", "pale", "shade", "alarm"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

/** Buttons, boxes and the list of ops of one chart, and the line that tells the choice. */
function addControls(chart, method) {
  const controls = method.querySelector(".controls");
  const views = controls.querySelector(".views");
  for (const [name, window] of chart.views()) {
    const button = Object.assign(document.createElement("button"), { type: "button" });
    button.textContent = name;
    button.addEventListener("click", () => chart.show(window));
    views.append(button);
  }
  for (const name of ["transfers", "cycle"]) {
    const box = controls.querySelector(`input[name=${name}]`);
    box.disabled = name === "cycle" && !chart.run.cycle.length;
    box.addEventListener("change", () => chart.set({ [name]: box.checked }));
  }
  const list = controls.querySelector("select");
  list.append(new Option("none", ""));
  for (const op of chart.run.ops) list.append(new Option(op.id, op.index));
  list.addEventListener("change", () => {
    const middle = Math.floor((chart.run.iterations - 1) / 2);
    const op = chart.run.ops[list.value];
    chart.choose(op ? chart.run.bar(op, middle) : null);
  });
  chart.node.addEventListener("chosen", ({ detail }) => {
    list.value = detail ? detail.op.index : "";
    method.querySelector(".chosen").textContent = detail ? sentence(chart.run, detail) : "";
  });
}

/** What the chart shows of a choice, in words. */
function sentence(run, bar) {
  const { before, after } = run.neighbours(bar);
  const names = (bars) => bars.map((b) => `${b.op.id} ${b.n}`).join(", ") || "nothing";
  return (
    `${bar.op.id}, iteration ${bar.n}, on ${run.lanes[bar.op.lane].name}, waits for ` +
    `${bar.op.waits}. It uses ${names(before)} (dashed); ${names(after)} (dotted) use it.`
  );
}

function start() {
  const data = JSON.parse(document.getElementById("data").textContent);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
  const nodes = [...document.querySelectorAll(".chart")];
  const charts = nodes.map((node) => new Chart(node, new Run(data.runs[node.dataset.run])));
  const fronts = [...document.querySelectorAll(".front")];
  const drawFronts = () => fronts.forEach((node, i) => drawFront(node, data.fronts[i]));
  const drawn = new Set();
  const draw = (chart) => {
    if (drawn.has(chart)) return;
    drawn.add(chart);
    addControls(chart, chart.node.closest(".method"));
    chart.draw();
  };
  const watch = new IntersectionObserver(
    (entries) =>
      entries
        .filter((entry) => entry.isIntersecting)
        .forEach((entry) => draw(charts[nodes.indexOf(entry.target)])),
    { rootMargin: "400px" },
  );
  nodes.forEach((node) => watch.observe(node));
  drawFronts();
  const redraw = () => {
    drawn.forEach((chart) => chart.redraw());
    drawFronts();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  // Paper is light and narrow, whatever the screen is.
  const paper = (on) => {
    document.documentElement.classList.toggle("paper", on);
    if (on) charts.filter((c) => c.node.closest("details").open).forEach(draw);
    redraw();
    drawn.forEach((chart) => Plotly.Plots.resize(chart.node));
  };
  addEventListener("beforeprint", () => paper(true));
  addEventListener("afterprint", () => paper(false));
  window.lpsched = { charts, drawn };
}

start();
