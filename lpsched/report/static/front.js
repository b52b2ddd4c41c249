// A front of two objectives: proved points full, others hollow.

function drawFront(node, front) {
  const theme = themeOf(document.documentElement);
  const said = (name) => name.replaceAll("_", " ");
  const axis = (name, unit) => ({
    title: { text: plain(unit ? `${said(name)}, ${unit}` : said(name)) },
    tickformat: "~s",
    color: theme.ink,
    gridcolor: theme.pale,
    zeroline: false,
  });
  const texts = front.points.map(([x, y, proved]) =>
    [
      `${said(front.x)} ${BigInt(x).toLocaleString("en")}`,
      `${said(front.y)} ${BigInt(y).toLocaleString("en")}`,
      proved ? "proved" : "not proved",
    ].join("<br>"),
  );
  const trace = {
    type: "scatter",
    mode: "lines+markers",
    line: { shape: "hv", color: theme.quiet, width: 1 },
    marker: {
      size: 9,
      color: theme.ink,
      symbol: front.points.map(([, , proved]) => (proved ? "circle" : "circle-open")),
    },
    x: front.points.map(([x]) => Number(x)),
    y: front.points.map(([, y]) => Number(y)),
    text: texts,
    hovertemplate: "%{text}<extra></extra>",
  };
  const layout = {
    height: 340,
    margin: { l: 90, r: 20, t: 10, b: 50 },
    paper_bgcolor: theme.ground,
    plot_bgcolor: theme.ground,
    font: { color: theme.ink, size: 12, family: "system-ui, sans-serif" },
    xaxis: axis(front.x, front.units[0]),
    yaxis: axis(front.y, front.units[1]),
  };
  return Plotly.react(node, [trace], layout, { responsive: true, displaylogo: false });
}
