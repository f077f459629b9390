
// The card of a label. What is chosen stands in the address, as #label=PLACE&form=York, so that "back" and "reload" do.
const cards = JSON.parse(document.getElementById("cards").textContent);
const card = document.getElementById("card");
const score = (value) => (value == null ? "–" : value.toFixed(3));

function make(name, properties = {}, ...children) {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

function makeTable(heads, rows) {
  if (!rows.length) return make("p", { className: "note" }, "None.");
  const head = make("tr", {}, ...heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((row) => make("tr", {}, ...row.map((value) => make("td", {}, value.toLocaleString("en")))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

function showFacts(label) {
  const { scores, boundaries, coverage, next } = cards.labels[label];
  const between = scores.f_low == null ? "" : ` ${score(scores.f_low)} to ${score(scores.f_high)}`;
  const fill = (id, ...children) => document.getElementById(id).replaceChildren(...children);
  fill("card-title", label);
  fill(
    "card-score",
    make("p", {}, make("span", { className: "value" }, score(scores.f)), `F${between}`),
    make("p", { className: "note" }, `P ${score(scores.p)}, R ${score(scores.r)}, ${scores.support ?? 0} spans in test`),
  );
  fill("card-boundaries", makeTable(["Gold", "Predicted", "Times"], boundaries));
  fill("card-coverage", makeTable(["Data set", "Whole texts", "Single spans"], coverage));
  fill("card-next", next && `Next: ${next}`);
  const number = [...document.querySelectorAll("#by-label option")].find((option) => option.textContent === label)?.value;
  const examples = [...document.querySelectorAll("#examples article")].filter((example) =>
    example.dataset.labels.split(" ").includes(number),
  );
  const copies = examples.slice(0, 3).map((example) => example.cloneNode(true));
  copies.forEach((copy) => (copy.hidden = false));
  fill("card-examples", ...copies);
  const link = make("a", { href: `#examples&${new URLSearchParams({ label })}` }, "All examples");
  fill("card-more", examples.length ? link : "None.");
}

function showCard() {
  const chosen = new URLSearchParams(location.hash.slice(1));
  const label = chosen.get("label");
  const shown = location.hash.startsWith("#label=") && Object.hasOwn(cards.labels, label);
  const changed = shown && document.getElementById("card-title").textContent !== label;
  card.hidden = !shown;
  document.body.classList.toggle("one-label", shown);
  if (shown) {
    if (changed) showFacts(label);
    showForms(label, chosen.get("form"));
    if (changed) document.getElementById("card-title").focus({ preventScroll: true });
    if (changed) scrollTo(0, 0);
  } else {
    document.getElementById("card-title").replaceChildren();
    const place = document.getElementById(location.hash.slice(1).split("&")[0]);
    if (place) place.scrollIntoView();
  }
}
