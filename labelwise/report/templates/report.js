"use strict";

const cards = JSON.parse(document.getElementById("cards").textContent);

const SHOWN = 10; // mistakes that are shown at once

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
  closeCard();
  const number = table.tBodies[0].rows[0]?.cells[column].dataset.value !== undefined;
  const before = headers[column].getAttribute("aria-sort");
  const falling = before === "none" ? number : before === "ascending";
  headers.forEach((header) => header.setAttribute("aria-sort", "none"));
  headers[column].setAttribute("aria-sort", falling ? "descending" : "ascending");
  const value = (row) => (number ? row.cells[column].dataset.value : row.cells[column].textContent);
  const order = (one, other) =>
    number ? Number(value(one) || -1) - Number(value(other) || -1) : value(one).localeCompare(value(other));
  const rows = [...table.tBodies[0].rows].sort((one, other) => (falling ? -1 : 1) * order(one, other));
  table.tBodies[0].append(...rows);
}

// A sentence as it is written, with its other spans. Offsets count characters, from the start of the span.
// Where it was cut, because it is long, there is an ellipsis.
function sentence(one, [from, to]) {
  const [before, words, after] = [[...one.before], [...one.surface], [...one.after]];
  const text = [...before, ...words, ...after];
  const cut = (side) => (side.length === cards.around ? "…" : "");
  const place = (offset) => Math.min(Math.max(before.length + (offset < to - from ? offset : offset - to + from + words.length), 0), text.length);
  const spans = [[0, to - from, null], ...one.others].map(([start, end, label]) => [place(start), place(end), label]);
  const parts = [cut(before)];
  let done = 0;
  for (const [start, end, label] of spans.sort(([a, b], [c, d]) => a - c || d - b)) {
    if (start < done && label !== null) continue; // inside another span
    parts.push(text.slice(done, start).join(""));
    const part = text.slice(Math.max(start, done), end).join("");
    parts.push(label === null ? make("mark", {}, part) : make("u", { title: label }, part));
    done = Math.max(done, end);
  }
  return make("div", { className: "text", dir: "auto" }, ...parts, text.slice(done).join(""), cut(after));
}

// The error, and how train annotates its words.
function describe(one) {
  const sides = [one.gold_label && `gold ${one.gold_label}`, one.predicted_label && `predicted ${one.predicted_label}`];
  const other = one.gold_text && one.predicted_text && one.predicted_text !== one.gold_text ? ` (“${one.predicted_text}”)` : "";
  const kind = cards.kinds[one.kind === "spurious" && !cards.gold.includes(one.predicted_label) ? "no_test_gold" : one.kind];
  const reason = cards.reasons[one.cause] ?? "";
  const times = (n) => (n === 1 ? "once" : `${n} times`);
  const otherwise = one.otherwise ? ` (${one.other_label} ${times(one.otherwise)})` : "";
  const train = `in train: ${one.gold_label ?? one.predicted_label} ${times(one.annotated)}, not ${one.gold_label ?? one.predicted_label} ${times(one.unannotated)}${otherwise}`;
  const parts = [kind + (one.count === 1 ? "" : `, ${times(one.count)}`), sides.filter(Boolean).join(", ") + other, reason, train, one.doc || one.key];
  return parts.filter(Boolean).join(" · ");
}

// An error in its sentence, and the text to search.
const entry = (one, labels, note) => ({
  labels,
  count: one.count,
  text: [note, one.before, one.surface, one.after].join(" ").toLowerCase(),
  make: () => make("article", {}, sentence(one, one.span), make("div", { className: "note" }, note), ...(one.why ? [make("code", { className: "command" }, one.why)] : [])),
});

// Errors that are fixed or new since the baseline, to search, too.
const mistakes = cards.mistakes.map((one) => entry({ ...one, surface: one.gold_text ?? one.predicted_text }, [one.gold_label, one.predicted_label], describe(one)));
for (const one of cards.changed) {
  const place = { ...one, surface: one.words, span: [0, [...one.words].length], others: [] };
  const parts = [`${one.change} since ${cards.baseline}`, cards.kinds[one.mistake], one.label, cards.reasons[one.cause], one.text];
  mistakes.push(entry(place, [one.label], parts.filter(Boolean).join(" · ")));
}

// Show the first errors of a list, with a button that doubles their number.
function list(some) {
  const listed = make("div");
  const button = make("button", { type: "button" });
  const buttons = make("div", { className: "buttons" }, button);
  const more = () => {
    const from = listed.childElementCount;
    listed.append(...some.slice(from, Math.max(SHOWN, 2 * from)).map((one) => one.make()));
    const [shown, rest] = [listed.childElementCount, some.length - listed.childElementCount];
    button.textContent = `Show ${Math.min(shown, rest)} more of ${rest.toLocaleString("en")}`;
    buttons.hidden = !rest;
  };
  button.addEventListener("click", more);
  more();
  return [listed, buttons];
}

// Show the errors of a label below its row, if the address ends with #label=NAME; for two labels, the errors between them.
function closeCard() {
  document.getElementById("card")?.closest("tr").remove();
}

function showLabel() {
  closeCard();
  const labels = location.hash.startsWith("#label=") ? new URLSearchParams(location.hash.slice(1)).getAll("label") : [];
  const row = [...document.querySelectorAll(".sortable tbody tr")].find((one) => one.cells[0].textContent === labels[0]);
  if (!row) return;
  const own = mistakes.filter((one) => labels.every((label) => one.labels.includes(label)));
  const names = labels.join(" and ");
  const since = cards.changed.length ? `, then those fixed and new since ${cards.baseline}` : "";
  const confused = labels.length > 1 ? `: ${own.reduce((sum, { count }) => sum + count, 0).toLocaleString("en")} confusions` : "";
  const title = own.length ? `Errors of ${names} on ${cards.split}${confused}, the most frequent first${since}` : `No errors of ${names} on ${cards.split}`;
  const card = make("div", { id: "card", tabIndex: -1 }, make("h3", {}, title), ...list(own));
  row.after(make("tr", {}, make("td", { colSpan: row.cells.length }, card)));
  card.focus({ preventScroll: true });
  card.scrollIntoView({ block: "nearest" });
}
addEventListener("hashchange", showLabel);
showLabel();

// Show the errors that a search finds.
function search() {
  const words = document.getElementById("search").value.toLowerCase().split(/\s+/);
  const some = mistakes.filter(({ text }) => words.every((word) => text.includes(word)));
  document.getElementById("found").textContent = `${some.length.toLocaleString("en")} errors, the most frequent first`;
  document.getElementById("list").replaceChildren(...list(some));
}
document.getElementById("search")?.addEventListener("input", search);
if (document.getElementById("search")) search();

// Triage, question by question. This browser keeps each decision until it is saved as decisions.jsonl; tabs, and later reports in the same
// folder, share it.
const KEPT = `labelwise decision ${location.pathname.replace(/[^/]*$/, "")} `;
const VERDICTS = { r: "gold is right", w: "gold is wrong", p: "policy" };
const shown = document.getElementById("case");
const kept = new Map(); // by id: {rows, saved}
const actions = []; // of this tab: where it was, and the entries before
let queue = []; // groups of cases that one answer decides; of the sample, each case is one
let at = 0;
let inside = -1; // index of the group's case that is decided alone; -1: the whole group is
let last = null; // the last verdict on a single case

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
  one.id = one.rows.length ? JSON.stringify(one.rows) : JSON.stringify([one.key, one.current, one.proposed]);
}
const ids = new Set(cards.cases.map((one) => one.id));

function tryToKeep(change) {
  try {
    change();
  } catch {
    document.getElementById("not-kept").hidden = false;
  }
}

const remember = (id, entry) => (entry ? kept.set(id, entry) : kept.delete(id));

function put(id, entry) {
  remember(id, entry);
  tryToKeep(() => (entry ? localStorage.setItem(KEPT + id, JSON.stringify(entry)) : localStorage.removeItem(KEPT + id)));
}

// Load the decisions, and forget saved ones about other reports' cases.
function load() {
  for (const key of Object.keys(localStorage).filter((name) => name.startsWith(KEPT))) {
    const id = key.slice(KEPT.length);
    const entry = JSON.parse(localStorage.getItem(key));
    if (entry.saved && !ids.has(id)) localStorage.removeItem(key);
    else kept.set(id, entry);
  }
}

// Queue the cases that the fields of the card select, in groups.
function fill() {
  const words = (document.getElementById("find")?.value ?? "").toLowerCase().split(/\s+/);
  const sampled = document.getElementById("queue")?.value === "sample";
  const said = (one) => [one.label, one.proposed?.[2], one.kind, one.before, one.surface, one.after, one.group, one.why].join(" ").toLowerCase();
  const cases = cards.cases.filter((one) => (sampled ? one.sample : one.listed) && words.every((word) => said(one).includes(word)));
  const groups = new Map();
  cases.forEach((one) => {
    const name = sampled ? one.id : one.group;
    groups.set(name, [...(groups.get(name) ?? []), one]);
  });
  queue = [...groups.values()];
  [at, inside] = [0, -1];
  skipDecided();
}

const open = (group) => group.filter((one) => one.rows.length && !kept.has(one.id));
const single = () => queue[at]?.[queue[at].length === 1 ? 0 : inside]; // the case, unless all of a group are asked about

// The cases that a verdict decides: a single one, or the open ones of the group, or all.
function asked() {
  const [one, group] = [single(), queue[at] ?? []];
  if (one) return [one];
  return open(group).length ? open(group) : group;
}

function skipDecided() {
  while (queue[at]?.some((one) => one.rows.length) && !open(queue[at]).length) at += 1;
}

// On to the next case of a group that is decided one by one, or else to the next group.
function advance() {
  const group = queue[at];
  const next = inside < 0 ? -1 : group.findIndex((one, n) => n > inside && !kept.has(one.id));
  if (next >= 0) {
    inside = next;
    return;
  }
  inside = -1;
  at += 1;
  skipDecided();
}

// Name the change of a case, or the change that several cases share.
function proposal(one, cases) {
  const { current, proposed } = one;
  if (!proposed) return "Remove the span";
  if (!current) return `Annotate as ${proposed[2]}`;
  if (current[2] !== proposed[2]) return `Change to ${proposed[2]}`;
  return cases.length === 1 ? `Change to “${one.better}”` : "Change the boundaries";
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
  const group = queue[at];
  if (!group) {
    shown.replaceChildren(make("p", {}, "Nothing left to review."));
    return;
  }
  const [one, rest, cases] = [single(), open(group), asked()];
  const [first] = cases;
  const button = (key, text) => {
    const made = make("button", { type: "button" }, text, " ", make("kbd", {}, key));
    made.addEventListener("click", () => act(key));
    made.dataset.key = key;
    return made;
  };
  const every = cases.length === 1 ? "" : ` (all ${cases.length})`;
  const buttons = first.rows.length ? [button("r", `Keep as it is${every}`), button("w", `${proposal(first, cases)}${every}`), button("p", `Not sure, ask${every}`)] : [];
  if (!one) buttons.push(button("e", "One by one"));
  else if (last && group.length > 1 && rest.length) buttons.push(button("a", `“${VERDICTS[last]}” for the other ${rest.length}, too`));
  const question = group.length > 1 ? `${first.group} ${group.length} cases` : first.group;
  const verdict = kept.get(first.id)?.rows[0].verdict;
  const listed = cases.flatMap((each) => [sentence(each, each.current ?? each.proposed), make("div", { className: "note" }, placeOf(each))]);
  shown.replaceChildren(
    make("div", { className: "note" }, `Question ${at + 1} of ${queue.length}: ${question}`),
    make("div", {}, make("strong", {}, verdict ? `${verdict} ` : ""), first.why),
    make("div", { className: "buttons" }, ...buttons, button("j", "Skip")),
    make("div", { id: "cases", tabIndex: 0, role: "region", ariaLabel: "Cases of the question" }, ...listed),
  );
  document.getElementById("next").textContent = sentences(`${at + 1} of ${queue.length}: ${question}`, first.before + first.surface + first.after, first.why);
}

// Join parts to read aloud, with one full stop after each.
const sentences = (...parts) => parts.map((part) => part.trim().replace(/[^.?!…]$/u, "$&.")).join(" ");

const placeOf = (one) => `${one.doc} ${Object.values(one.answers).map(({ file, annotator }) => (annotator ? `${file} (${annotator})` : file)).join(", ")}`;

function decide(cases, key) {
  actions.push({ where: [at, inside, last], before: cases.map(({ id }) => [id, kept.get(id)]) });
  cases.forEach(({ id, rows }) => put(id, { rows: rows.map((row) => ({ ...row, verdict: VERDICTS[key] })), saved: false }));
}

function undo(action) {
  [at, inside, last] = action.where;
  action.before.forEach(([id, entry]) => put(id, entry));
}

function act(key) {
  const [one, group] = [single(), queue[at] ?? []];
  const [rest, answered] = [open(group), asked().filter(({ rows }) => rows.length)];
  if (key === "k") [at, inside] = [inside < 0 ? Math.max(0, at - 1) : at, -1];
  else if (key === "u" && actions.length) undo(actions.pop());
  else if (!group.length) return false;
  else if (key === "j") advance();
  else if (key === "e" && !one) [inside, last] = [Math.max(0, group.indexOf(rest[0])), null];
  else if (key === "a" && one && last && group.length > 1 && rest.length) {
    decide(rest, last);
    inside = -1;
    advance();
  } else if (key in VERDICTS && answered.length) {
    decide(answered, key);
    last = one ? key : null;
    advance();
  } else return false;
  const pressed = document.activeElement?.closest("#case button");
  showCase();
  const again = pressed && [...shown.querySelectorAll("button")].find((button) => button.dataset.key === key);
  (again ?? shown).focus({ preventScroll: true });
  return true;
}

// Decisions from an earlier report come first, because the last decision about a span counts.
function download() {
  const saved = [...kept.keys()].filter((id) => !ids.has(id)).concat([...ids].filter((id) => kept.has(id)));
  const rows = saved.flatMap((id) => kept.get(id).rows);
  const href = URL.createObjectURL(new Blob(rows.map((row) => `${JSON.stringify(row)}\n`), { type: "application/jsonl" }));
  make("a", { href, download: "decisions.jsonl" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
  saved.forEach((id) => put(id, { ...kept.get(id), saved: true }));
}

tryToKeep(load);
if (cards.cases.length || kept.size) {
  shown.hidden = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    const { top, bottom } = shown.getBoundingClientRect();
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (bottom > 0 && top < innerHeight && act(key)) event.preventDefault();
  });
  addEventListener("storage", ({ key, newValue }) => {
    if (!key?.startsWith(KEPT)) return;
    remember(key.slice(KEPT.length), JSON.parse(newValue));
    showCase();
  });
  for (const id of ["queue", "find"]) {
    document.getElementById(id)?.addEventListener("input", () => {
      fill();
      showCase();
    });
  }
  fill();
  showCase();
}
