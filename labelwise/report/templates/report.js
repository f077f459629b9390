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

// Triage: one case at a time. This browser keeps each decision, an entry by its rows, until it is saved as decisions.jsonl: the tabs and
// the later reports in a folder share them.
const KEPT = `labelwise decision ${location.pathname.replace(/[^/]*$/, "")} `;
const VERDICTS = { r: "gold is right", w: "gold is wrong", p: "policy" };
const shown = document.getElementById("case");
const kept = new Map(); // by id: {rows, saved}
const actions = []; // of this tab: where it was, and the entries before
let at = 0;
let asks = false; // the next verdict is on all cases of a form

// A correction to another label is two decisions: one removes, one adds.
function rowsOf(one) {
  const row = (label, removed, added) => {
    const answer = one.answers[label];
    const span = (place) => place && place.slice(0, 2);
    return answer && { dataset: answer.dataset, text: one.key, label, answer: answer.answer, removed: span(removed), added: span(added) };
  };
  const { current, proposed } = one;
  const rows = current && proposed && current[2] !== proposed[2]
    ? [row(current[2], current, null), row(proposed[2], null, proposed)]
    : [row(one.label, current, proposed)];
  return rows.filter(Boolean);
}

for (const one of cards.cases) {
  one.rows = rowsOf(one);
  one.id = JSON.stringify(one.rows);
}
const ids = new Set(cards.cases.map((one) => one.id));

function tryToKeep(change) {
  try {
    change();
  } catch {
    document.getElementById("not-kept").hidden = false;
  }
}

function put(id, entry) {
  if (entry) kept.set(id, entry);
  else kept.delete(id);
  tryToKeep(() => (entry ? localStorage.setItem(KEPT + id, JSON.stringify(entry)) : localStorage.removeItem(KEPT + id)));
}

// What was saved, and isn't asked here, is forgotten.
function load() {
  for (const key of Object.keys(localStorage).filter((name) => name.startsWith(KEPT))) {
    const id = key.slice(KEPT.length);
    const entry = JSON.parse(localStorage.getItem(key));
    if (entry.saved && !ids.has(id)) localStorage.removeItem(key);
    else kept.set(id, entry);
  }
}

function skipDecided() {
  while (cards.cases[at] && kept.has(cards.cases[at].id)) at += 1;
}

function proposal(one) {
  if (!one.proposed) return "No span";
  return one.current && one.current[2] === one.proposed[2] ? `“${one.better}”` : `${one.proposed[2]}: “${one.better}”`;
}

const formOf = (one) => JSON.stringify([one.kind, one.label, one.form, one.better, one.proposed?.[2]]);

// The cases of a form that a verdict on all of it decides: those that aren't decided yet, and this one.
function alike(one) {
  return cards.cases.filter((other) => other.rows.length && formOf(other) === formOf(one) && (other === one || !kept.has(other.id)));
}

function showStatus() {
  const others = [...kept.keys()].filter((id) => !ids.has(id)).length;
  const count = kept.size === 1 ? "1 decision" : `${kept.size.toLocaleString("en")} decisions`;
  const status = document.getElementById("decided");
  status.textContent = others ? `${count} (${others.toLocaleString("en")} from an earlier report). ` : `${count}. `;
  if (kept.size) {
    const save = make("button", { type: "button", id: "download" }, "Save decisions.jsonl");
    save.addEventListener("click", download);
    status.append(save);
  }
}

function showCase() {
  showStatus();
  const one = cards.cases[at];
  if (!one) {
    shown.replaceChildren(make("p", {}, "These were all."));
    return;
  }
  const all = alike(one).length;
  const button = (key, text, name = key) => {
    const made = make("button", { type: "button", tabIndex: -1 }, text, " ", make("kbd", {}, name));
    made.addEventListener("click", () => act(key));
    return made;
  };
  const buttons = one.rows.length ? [button("r", "Right as it is"), button("w", proposal(one)), button("p", "Ask")] : [];
  if (asks) buttons.push(button("Escape", "This one only", "Esc"));
  else if (all > 1) buttons.push(button("a", `Apply to all ${all}`));
  const verdict = asks ? `What about all ${all} of this form? ` : `${kept.get(one.id)?.rows[0].verdict ?? ""} `;
  shown.replaceChildren(
    make("div", { className: "note" }, `${at + 1} of ${cards.cases.length} · ${one.label} · ${one.kind} · `, one.doc, ` ${Object.values(one.answers).map((answer) => answer.file).join(", ")}`),
    make("div", { className: "text", dir: "auto" }, one.before, make("mark", {}, one.form), one.after),
    make("div", {}, make("strong", {}, verdict), one.why),
    make("div", { className: "buttons" }, ...buttons, button("j", "Skip")),
  );
}

function decide(cases, verdict) {
  actions.push({ at, before: cases.map(({ id }) => [id, kept.get(id)]) });
  cases.forEach(({ id, rows }) => put(id, { rows: rows.map((row) => ({ ...row, verdict })), saved: false }));
}

function undo({ at: where, before }) {
  at = where;
  before.forEach(([id, entry]) => put(id, entry));
}

function act(key) {
  const one = cards.cases[at];
  const all = asks;
  asks = false;
  if (key === "k") at = Math.max(0, at - 1);
  else if (key === "u" && actions.length) undo(actions.pop());
  else if (one && (key === "j" || (key in VERDICTS && one.rows.length))) {
    if (key !== "j") decide(all ? alike(one) : [one], VERDICTS[key]);
    at += 1;
    skipDecided();
  } else if (one && key === "a" && alike(one).length > 1) asks = true;
  else if (!all) return false;
  showCase();
  shown.focus({ preventScroll: true });
  return true;
}

// What an earlier report asked comes first: of several decisions on a span, the last counts.
function download() {
  const saved = [...kept.keys()].filter((id) => !ids.has(id)).concat([...ids].filter((id) => kept.has(id)));
  const rows = saved.flatMap((id) => kept.get(id).rows);
  const href = URL.createObjectURL(new Blob(rows.map((row) => `${JSON.stringify(row)}\n`), { type: "application/jsonl" }));
  make("a", { href, download: "decisions.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
  saved.forEach((id) => put(id, { ...kept.get(id), saved: true }));
}

if (shown) tryToKeep(load);
if (shown && (cards.cases.length || kept.size)) {
  shown.hidden = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    const { top, bottom } = shown.getBoundingClientRect();
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (bottom > 0 && top < innerHeight && act(key)) event.preventDefault();
  });
  addEventListener("storage", ({ key, newValue }) => {
    if (!key?.startsWith(KEPT)) return;
    const id = key.slice(KEPT.length);
    if (newValue) kept.set(id, JSON.parse(newValue));
    else kept.delete(id);
    showCase();
  });
  skipDecided();
  showCase();
}
