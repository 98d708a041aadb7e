// The page says everything without this: here words are linked across methods, and columns sorted.

/* the same word under the pointer, wherever it stands */
const marked = (at) => at === undefined ? [] : document.querySelectorAll(`[data-at="${Number(at)}"]`);
let under;
document.addEventListener("pointerover", (event) => {
  const at = event.target.closest("[data-at]")?.dataset.at;
  if (at === under) return;
  marked(under).forEach((one) => one.classList.remove("same"));
  marked(at).forEach((one) => one.classList.add("same"));
  under = at;
});

/* a click on a heading: strongest first, weakest first, as in the text */
const body = document.querySelector(".scores tbody");
const headings = [...document.querySelectorAll(".scores .name")];
const NEXT = { none: "descending", descending: "ascending", ascending: "none" };
const size = (row, column) => Math.abs(row.cells[column + 1].dataset.score);

function sort(column, order) {
  const rows = [...body.rows].sort((one, other) => one.dataset.at - other.dataset.at);
  if (order !== "none") {
    const sign = order === "descending" ? -1 : 1;
    rows.sort((one, other) => sign * (size(one, column) - size(other, column)));
  }
  body.append(...rows);
}

headings.forEach((heading, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.title = "Sort by the size of the score";
  button.append(...heading.childNodes);
  heading.append(button);
  button.addEventListener("click", () => {
    const order = NEXT[heading.getAttribute("aria-sort") || "none"];
    headings.forEach((one) => one.removeAttribute("aria-sort"));
    if (order !== "none") heading.setAttribute("aria-sort", order);
    sort(column, order);
  });
});
