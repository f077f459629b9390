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

// Counts fall at first, everything else rises.
function sortBy(table, headers, column) {
  const rows = [...table.tBodies[0].rows];
  const counts = rows.every((row) => /^\d*$/.test(row.cells[column].dataset.value ?? "-"));
  const before = headers[column].getAttribute("aria-sort");
  const rising = before === "none" ? !counts : before === "descending";
  headers.forEach((header) => header.setAttribute("aria-sort", "none"));
  headers[column].setAttribute("aria-sort", rising ? "ascending" : "descending");
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

// Commands are copied by a button.
for (const code of document.querySelectorAll("code.command")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy ${code.textContent}`);
  button.addEventListener("click", async () => {
    getSelection().selectAllChildren(code); // where a page may not write to the clipboard, the keyboard can
    await navigator.clipboard?.writeText(code.textContent);
    button.textContent = "Copied";
  });
  code.after(button);
}

const find = document.getElementById("find-label");
find?.addEventListener("input", () => {
  const searched = find.value.trim().toLowerCase();
  for (const row of document.querySelectorAll(".labels tbody tr")) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(searched);
  }
});

// What is chosen stands in the address, as #examples&kind=missed&label=PLACE&pair=PLACE→PERSON&text=york, so that it can
// be sent, and so that links of the page can choose.
const STEP = 20;

function addButton(place, name) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = name;
  place.append(" ", button);
  return button;
}

const form = document.querySelector(".filters");
if (form) {
  const [kind, label, text] = ["by-kind", "by-label", "by-text"].map((id) => document.getElementById(id));
  const [count, pair] = ["count", "pair"].map((id) => document.getElementById(id));
  const more = addButton(document.getElementById("more"), `Show ${STEP} more`);
  const anyPair = addButton(pair, "any labels");
  const totals = JSON.parse(document.getElementById("totals").textContent);
  const examples = [...document.querySelectorAll("#examples article")];
  let most = STEP;

  const filter = () => {
    const searched = text.value.trim().toLowerCase();
    const fitting = examples.filter(
      (example) =>
        [example.dataset.kind, "*"].includes(kind.value) &&
        [...example.dataset.labels.split(" "), "*"].includes(label.value) &&
        [example.dataset.pair, ""].includes(pair.dataset.chosen) &&
        [example.dataset.form, ""].includes(pair.dataset.form) &&
        example.querySelector("dl").textContent.toLowerCase().includes(searched),
    );
    const shown = new Set(fitting.slice(0, most));
    examples.forEach((example) => (example.hidden = !shown.has(example)));
    more.hidden = fitting.length <= most;
    const { chosen: pattern, form: words } = pair.dataset;
    const counted = pattern && label.value === "*" ? pattern : label.value;
    const all = searched || words || (pattern && counted !== pattern) ? fitting.length : totals[`${kind.value} ${counted}`] ?? 0;
    const chosen = [kind, label].map((select) => select.selectedOptions[0].textContent);
    const said = [...chosen, pattern, words, searched && `“${searched}”`].filter(Boolean).join(", ");
    count.textContent = `${shown.size.toLocaleString("en")} of ${all.toLocaleString("en")} mistakes (${said})`;
    // What is chosen is printed; if nothing is, one of each pattern.
    const narrowed = kind.value !== "*" || label.value !== "*" || pattern || words || searched;
    document.getElementById("examples").classList.toggle("chosen", Boolean(narrowed));
    pair.hidden = !pattern && !words;
    pair.querySelector("span").textContent = [pattern, words].filter(Boolean).join(": ");
  };

  const select = (options, name) => {
    const found = [...options.options].find((option) => option.textContent === name);
    options.value = found ? found.value : "*";
  };

  const read = () => {
    const [place, ...given] = location.hash.slice(1).split("&");
    if (place !== "examples" || !given.length) return;
    const chosen = new URLSearchParams(given.join("&"));
    select(kind, chosen.get("kind"));
    select(label, chosen.get("label"));
    text.value = chosen.get("text") ?? "";
    pair.dataset.chosen = chosen.get("pair") ?? "";
    pair.dataset.form = chosen.get("form") ?? "";
    most = STEP;
    filter();
    document.getElementById("examples").scrollIntoView();
  };

  const change = () => {
    most = STEP;
    const named = [["kind", kind], ["label", label]].map(([name, { value, selectedOptions }]) => [
      name,
      value === "*" ? "" : selectedOptions[0].textContent,
    ]);
    const chosen = [
      ...named,
      ["pair", pair.dataset.chosen],
      ["form", pair.dataset.form],
      ["text", text.value.trim()],
    ].filter(([, value]) => value);
    history.replaceState(null, "", `#${["examples", new URLSearchParams(chosen)].filter(String).join("&")}`);
    filter();
  };

  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", change);
  more.addEventListener("click", () => {
    most += STEP;
    filter();
  });
  anyPair.addEventListener("click", () => {
    pair.dataset.chosen = pair.dataset.form = "";
    change();
  });
  addEventListener("hashchange", read);
  filter();
  read();
}
