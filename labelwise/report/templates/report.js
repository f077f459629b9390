"use strict";

const cards = JSON.parse(document.getElementById("cards").textContent);

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

// The table of labels, sorted by a column.
for (const table of document.querySelectorAll("table.sortable")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => {
    const button = make("button", { type: "button" }, header.textContent);
    button.addEventListener("click", () => sortBy(table, headers, column));
    header.replaceChildren(button);
    header.setAttribute("aria-sort", "none");
  });
}

function sortBy(table, headers, column) {
  const number = table.tBodies[0].rows[0]?.cells[column].dataset.value !== undefined;
  const falling = headers[column].getAttribute("aria-sort") === "none" ? number : headers[column].getAttribute("aria-sort") === "ascending";
  headers.forEach((header) => header.setAttribute("aria-sort", "none"));
  headers[column].setAttribute("aria-sort", falling ? "descending" : "ascending");
  const value = (row) => (number ? row.cells[column].dataset.value : row.cells[column].textContent);
  const order = (one, other) =>
    number ? Number(value(one) || -1) - Number(value(other) || -1) : value(one).localeCompare(value(other));
  const rows = [...table.tBodies[0].rows].sort((one, other) => (falling ? -1 : 1) * order(one, other));
  table.tBodies[0].append(...rows);
}

// The mistakes of a label, where the address ends with #label=NAME.
function showLabel() {
  const card = document.getElementById("card");
  const label = new URLSearchParams(location.hash.slice(1)).get("label");
  const examples = location.hash.startsWith("#label=") && Object.hasOwn(cards.examples, label) ? cards.examples[label] : null;
  if (!card) return;
  card.hidden = examples === null;
  if (examples === null) return;
  const items = examples.map((one) => {
    const sides = [one.gold_label && `gold ${one.gold_label}`, one.predicted_label && `predicted ${one.predicted_label}`];
    const other = one.predicted_form && one.predicted_form !== one.form ? ` (predicted: ${one.predicted_form})` : "";
    const times = one.count === 1 ? "" : `, ${one.count} times`;
    return make(
      "article", {},
      make("div", { className: "text", dir: "auto" }, one.before, make("mark", {}, one.form), one.after),
      make("div", { className: "note" }, `${one.kind}${times}: ${sides.filter(Boolean).join(", ")}${other}; train marks it ${one.marked} times, leaves it ${one.free} times. ${one.doc || one.key}`),
    );
  });
  card.replaceChildren(make("h2", {}, `Mistakes of ${label} on test, those made most often first`), ...items);
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", showLabel);
showLabel();

// Triage: one case at a time; what is decided stays in this browser, and is saved as decisions.jsonl.
const KEPT = `labelwise decisions ${cards.digest}`;
const VERDICTS = { r: "gold is right", w: "gold is wrong", p: "policy" };
const shown = document.getElementById("case");
const idOf = (one) => JSON.stringify([one.key, one.label, one.current, one.proposed]);
let verdicts = new Map();
let at = 0;

// A correction to another label is two decisions: one removes, one adds.
function rowsOf(one) {
  const verdict = verdicts.get(idOf(one));
  const row = (label, removed, added) => {
    const answer = one.answers[label];
    const span = (place) => place && place.slice(0, 2);
    return answer && { dataset: answer.dataset, text: one.key, label, answer: answer.answer, verdict, removed: span(removed), added: span(added) };
  };
  const { current, proposed } = one;
  const rows = current && proposed && current[2] !== proposed[2]
    ? [row(current[2], current, null), row(proposed[2], null, proposed)]
    : [row(one.label, current, proposed)];
  return rows.filter(Boolean);
}

function keep() {
  try {
    localStorage.setItem(KEPT, JSON.stringify([...verdicts]));
  } catch {
    document.getElementById("not-kept").hidden = false;
  }
}

function proposal(one) {
  if (!one.proposed) return "No span";
  return one.current && one.current[2] === one.proposed[2] ? `“${one.better}”` : `${one.proposed[2]}: “${one.better}”`;
}

function showCase() {
  const one = cards.cases[at];
  const count = verdicts.size === 1 ? "1 decision" : `${verdicts.size.toLocaleString("en")} decisions`;
  const status = document.getElementById("decided");
  status.textContent = `${count}. `;
  if (verdicts.size) {
    const save = make("button", { type: "button", id: "download" }, "Save decisions.jsonl");
    save.addEventListener("click", download);
    status.append(save);
  }
  if (!one) {
    shown.replaceChildren(make("p", {}, "These were all."));
    return;
  }
  const answers = Object.values(one.answers);
  const where = one.doc;
  const alike = cards.cases.filter((other) => formOf(other) === formOf(one)).length;
  const button = (key, text) => {
    const made = make("button", { type: "button", tabIndex: -1 }, text, " ", make("kbd", {}, key));
    made.addEventListener("click", () => act(key));
    return made;
  };
  const buttons = rowsOf(one).length ? [button("r", "Right as it is"), button("w", proposal(one)), button("p", "Ask")] : [];
  if (alike > 1 && buttons.length) buttons.push(button("a", `Apply to all ${alike}`));
  shown.replaceChildren(
    make("div", { className: "note" }, `${at + 1} of ${cards.cases.length} · ${one.label} · ${one.kind} · `, where, ` ${answers.map((answer) => answer.file).join(", ")}`),
    make("div", { className: "text", dir: "auto" }, one.before, make("mark", {}, one.form), one.after),
    make("div", {}, make("strong", {}, verdicts.get(idOf(one)) ?? ""), " ", one.why),
    make("div", { className: "buttons" }, ...buttons, button("j", "Skip")),
  );
}

const formOf = (one) => JSON.stringify([one.kind, one.label, one.form, one.better, one.proposed?.[2]]);

function act(key) {
  const one = cards.cases[at];
  if (key === "k") at = Math.max(0, at - 1);
  else if (!one) return false;
  else if (key === "j") at += 1;
  else if (key === "u") verdicts.delete(idOf(one));
  else if (key in VERDICTS && rowsOf(one).length) {
    verdicts.set(idOf(one), VERDICTS[key]);
    at += 1;
  } else if (key === "a") {
    // The verdict on this case, or else on the one before, if it has the same form.
    const before = [one, cards.cases[at - 1]].find((other) => other && verdicts.has(idOf(other)) && formOf(other) === formOf(one));
    const verdict = before ? verdicts.get(idOf(before)) : VERDICTS.w;
    cards.cases.filter((other) => formOf(other) === formOf(one)).forEach((other) => verdicts.set(idOf(other), verdict));
    at += 1;
  } else return false;
  while (key !== "k" && key !== "u" && cards.cases[at] && verdicts.has(idOf(cards.cases[at]))) at += 1;
  keep();
  showCase();
  shown.focus({ preventScroll: true });
  return true;
}

function download() {
  const rows = cards.cases.filter((one) => verdicts.has(idOf(one))).flatMap(rowsOf);
  const href = URL.createObjectURL(new Blob(rows.map((row) => `${JSON.stringify(row)}\n`), { type: "application/jsonl" }));
  make("a", { href, download: "decisions.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

if (shown) {
  try {
    verdicts = new Map(JSON.parse(localStorage.getItem(KEPT) ?? "[]"));
  } catch {
    document.getElementById("not-kept").hidden = false;
  }
  shown.hidden = false;
  shown.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("a")) return;
    if (act(event.key)) event.preventDefault();
  });
  while (cards.cases[at] && verdicts.has(idOf(cards.cases[at]))) at += 1;
  showCase();
}
