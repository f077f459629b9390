"use strict";

// Without this script, all examples are shown, and the tables are as they are.
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = header.textContent;
    button.addEventListener("click", () => sortBy(table, headers, column));
    header.replaceChildren(button);
    header.setAttribute("aria-sort", "none");
  });
}

function sortBy(table, headers, column) {
  const rising = headers[column].getAttribute("aria-sort") !== "ascending";
  headers.forEach((header) => header.setAttribute("aria-sort", "none"));
  headers[column].setAttribute("aria-sort", rising ? "ascending" : "descending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((one, other) => compare(one.cells[column], other.cells[column], rising ? 1 : -1));
  table.tBodies[0].append(...rows);
}

// Cells without a value come last, whichever way.
function compare(one, other, sign) {
  if (!("value" in one.dataset)) return sign * (one.textContent < other.textContent ? -1 : 1);
  const [value, against] = [one.dataset.value, other.dataset.value];
  if (!value || !against) return Number(!value) - Number(!against);
  return sign * (Number(value) - Number(against));
}

const form = document.querySelector(".filters");
if (form) {
  const [kind, label] = ["by-kind", "by-label"].map((id) => document.getElementById(id));
  const count = document.getElementById("count");
  const totals = JSON.parse(document.getElementById("totals").textContent);
  const examples = [...document.querySelectorAll("#examples article")];

  const filter = () => {
    let shown = 0;
    for (const example of examples) {
      const { kind: ofKind, labels } = example.dataset;
      const fits = [ofKind, "*"].includes(kind.value) && [...labels.split(" "), "*"].includes(label.value);
      example.hidden = !fits;
      shown += fits;
    }
    const all = totals[`${kind.value} ${label.value}`] ?? 0;
    const chosen = [kind, label].map((select) => select.selectedOptions[0].textContent).join(", ");
    count.textContent = `${shown.toLocaleString("en")} of ${all.toLocaleString("en")} mistakes (${chosen})`;
  };

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("change", filter);
  filter();
}
