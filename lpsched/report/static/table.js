// Tables that sort by the heading that is pressed: numbers as numbers, gaps last.

/** The number in a cell such as "1,234" or "12.5 %"; NaN for none. */
function numberIn(text) {
  return parseFloat(text.replace(/[^0-9.eE+-]/g, ""));
}

/** Order two cells; `side` "right" marks a column of numbers. */
function compareCells(a, b, side, sign) {
  if (side !== "right") return sign * a.localeCompare(b);
  const [x, y] = [numberIn(a), numberIn(b)];
  if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
  return sign * (x - y);
}

function sortBy(table, column) {
  const heads = [...table.tHead.rows[0].cells];
  const falling = heads[column].getAttribute("aria-sort") === "ascending";
  heads.forEach((head) => head.removeAttribute("aria-sort"));
  heads[column].setAttribute("aria-sort", falling ? "descending" : "ascending");
  const text = (row) => row.cells[column].textContent;
  const side = heads[column].className;
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => compareCells(text(a), text(b), side, falling ? -1 : 1));
  table.tBodies[0].append(...rows);
}

function makeSortable(table) {
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sortBy(table, column));
  });
}
