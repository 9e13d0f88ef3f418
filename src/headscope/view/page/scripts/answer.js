// The verdict on the chosen head: the answer in words, bars for head, rule and untrained model, sentences in which the
// head is right, and sentences in which it is wrong.
import { drawBars } from "./bars.js";
import { element, find, minus, number, percent } from "./dom.js";
import { addressOf, attentionType, findRow, flat, headName, isShown, page, plainOf, readChange, readVariable, scoreOf } from "./numbers.js";
import { drawArcs } from "./pictures.js";
import { choose } from "./state.js";
import { examplesOf, hasHead, judge, readAttention, texts } from "./texts.js";

const SHOWN = 3; // number of examples of each kind
const KINDS = { clear: "Where the reported head does well", fails: "Where it does badly" };
const BADGES = { stands_out: "\u25cf stands out", does_not: "\u25cb does not stand out", undecided: "? cannot decide", not_yet: "not yet" };
let turns = 0; // count of drawings; only the last one is finished

const nameHead = (state) => `Head ${headName(state.head)}${page.attention_types.length ? ", " + page.attention_types[attentionType(state)] : ""}`;

const isReported = (row, state) => row.head === headName(state.head) && isShown(row, state);

const average = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// Format a value for readers: shares in percent, other values with their unit.
const isShare = (units) => /share|accuracy|F1|precision|recall/.test(units);
const format = (value, units) => (value === null ? "\u2013" : isShare(units) ? percent(value) : `${minus(number(value))} ${units}`);

// Compare the value of a head with the values of all heads.
function describeValue(state) {
  const { values, title, units, names, baselineText } = readVariable(state);
  const value = values[state.head.layer][state.head.head];
  if (value !== null && names) return `${title}: ${names[value] || "none"}, as ${flat(values).filter((other) => other === value).length} of ${flat(values).length} heads.`;
  if (value === null) return `${title}: this head has no value.`;
  const all = flat(values);
  const above = all.filter((other) => other > value).length;
  const baseline = baselineText ? `; ${baselineText}` : "";
  const rank = above ? `rank ${above + 1} of ${all.length} heads` : `the largest of ${all.length} heads`;
  const claim = describeClaim(state, value) || `${title}: ${format(value, units)}`;
  const note = scoreOf(state)?.note ? ` ${scoreOf(state).note}` : "";
  return `${claim}, ${rank}; mean ${format(average(all), units)}${baseline}.${note}`;
}

// State what a head does on all items of a question; empty for changes, and for questions without right and wrong.
function describeClaim(state, value) {
  const score = scoreOf(state);
  if (!score?.ranked || !score.count || state.half === "held-out half" || readChange(state)) return "";
  const { claim, ...plain } = plainOf(score, state.direction);
  const parts = { ...plain, share: percent(value), count: score.count.toLocaleString("en") };
  return `It ${claim.replaceAll(/{(\w+)}/g, (_, name) => parts[name])}`;
}

const nameEnds = ([, lower, upper]) => (lower === null || upper === null ? "" : `, 95\u202f% interval ${percent(lower)} to ${percent(upper)}`);

// List bars for a row with a head: the head, the best rule and the untrained model, on the same held-out items.
function listRowBars(row, state) {
  const items = `${row.n.toLocaleString("en")} held-out ${row.plain.items}`;
  const bar = (label, { score }, about) => ({ label, value: score[0], interval: score.slice(1), text: percent(score[0]), about: `${about}: ${percent(score[0])} of ${items}${nameEnds(score)}.` });
  const own = isReported(row, state) ? [] : [listValueBars(state)[0]];
  const reported = bar(`head ${row.head}`, row, `Head ${row.head}`);
  const chance = row.permuted === null ? {} : { tick: row.permuted, about: `${reported.about} The mark is what it has when the annotation is at other places, ${percent(row.permuted)}: ${page.terms.permuted}` };
  const rule = row.rivals.find((rival) => rival.is_best) ?? row.rivals.find((rival) => rival.name === row.strongest && rival.is_rule);
  const untrained = row.rivals.find((rival) => !rival.is_rule);
  return [
    ...own,
    { ...reported, ...chance, isThis: !own.length, text: `${reported.text} of ${row.n.toLocaleString("en")}` },
    ...(rule ? [{ ...bar(rule.plain, rule, rule.plain), kind: "rule" }] : []),
    ...(untrained ? [{ ...bar("untrained model", untrained, page.terms.untrained), kind: "other" }] : []),
  ];
}

// List bars for any other number: the head, the mean of all heads, the highest head, and uniform attention.
function listValueBars(state) {
  const { values, units, baseline, baselineText, about } = readVariable(state), all = flat(values);
  const value = values[state.head.layer][state.head.head];
  const bar = (label, each, kind, what) => ({ label, value: each, kind, text: format(each, units), about: what });
  return [
    { ...bar(`head ${headName(state.head)}`, value, "", about), isThis: true },
    bar("mean of all heads", average(all), "other", "The mean over all heads of the model."),
    bar("highest", Math.max(...all), "other", "The highest head of the model."),
    ...(baseline === null ? [] : [bar("baseline", baseline, "rule", baselineText)]),
  ];
}

function drawVerdict(state, row) {
  const reported = row && isReported(row, state), { values, title, names, diverging } = readVariable(state), badge = find("answer-badge");
  find("answer-name").textContent = `${nameHead(state)}: ${title}`;
  find("answer-row").textContent = reported ? row.answer : describeValue(state);
  find("answer-details").textContent = reported ? row.details : "";
  badge.className = `badge ${reported ? row.verdict : ""}`;
  badge.textContent = reported ? BADGES[row.verdict] ?? "" : row ? (row.head === headName(state.head) ? "not the reported direction" : "not the reported head") : "describes";
  badge.title = reported ? page.terms[row.verdict] ?? "" : row ? `The verdict is on head ${row.head}, which was chosen for this question.` : page.terms.describes;
  find("answer-name").title = row ? [row.plain.about, row.plain.example].filter(Boolean).join(" ") : "";
  const bars = diverging || names || !flat(values).length ? [] : row && isShown(row, state) ? listRowBars(row, state) : listValueBars(state);
  const top = row || isShare(readVariable(state).units) ? 1 : Math.max(...bars.map((bar) => bar.value ?? 0)) || 1;
  drawBars(find("answer-bars"), bars, top);
  const link = find("answer-link");
  link.parentElement.hidden = !row || reported;
  if (row) {
    link.textContent = `head ${row.head}: ${row.plain.title}`;
    link.setAttribute("href", "#" + addressOf(row));
  }
}

async function drawExample(example, state, score) {
  const text = texts[example.text];
  const attention = await readAttention(example.text, state, "words", [state.head]);
  const gold = judge(text, score, state.direction, attention);
  const [svg] = drawArcs(attention, gold, gold.length ? gold.map((link) => link.from) : null);
  svg.removeAttribute("aria-labelledby");
  svg.setAttribute("aria-label", text.words.join(" "));
  const right = gold.filter((link) => link.right).length;
  const open = element("button", "show above", { type: "button", class: "plain" });
  open.addEventListener("click", () => choose({ text: String(example.text) }));
  const item = element("li");
  const picture = element("div", null, { class: "scroll sentence", tabindex: "0", role: "group", "aria-label": "Example" });
  picture.append(svg);
  item.append(picture, gold.length ? `${right} of ${gold.length} right; ` : "", open);
  return item;
}

// In a sentence that is wider than its box, scroll the first gold word to the middle.
function scrollToGold(picture) {
  const first = picture.querySelector("text.right, text.wrong");
  if (first) picture.scrollLeft = first.getAttribute("x") - picture.clientWidth / 2;
}

async function listExamples(state, score) {
  const nodes = [];
  for (const [kind, title] of Object.entries(KINDS)) {
    const examples = examplesOf(score.key).filter((each) => each.kind === kind).slice(0, SHOWN);
    if (!examples.length) continue;
    const list = element("ol");
    list.append(...await Promise.all(examples.map((example) => drawExample(example, state, score))));
    const part = element("div");
    part.append(element("h3", title), list);
    nodes.push(part);
  }
  return nodes;
}

export const drawAnswer = (state) => drawVerdict(state, findRow(state));

export function buildExamples() {
  find("examples").hidden = !page.rows.some((row) => examplesOf(row.key).length);
}

export async function drawExamples(state) {
  const [row, score, place] = [findRow(state), scoreOf(state), find("answer-examples")];
  const turn = ++turns;
  const shown = row && score && texts.length && hasHead(texts[0], state, state.head);
  const examples = shown ? await listExamples(state, score) : [];
  if (turn !== turns) return; // the reader has chosen something else meanwhile
  place.replaceChildren(...examples);
  requestAnimationFrame(() => place.querySelectorAll(".sentence").forEach(scrollToGold)); // after the layout is known
  find("answer-note").hidden = !examples.length;
  find("examples-absent").hidden = examples.length > 0;
}
