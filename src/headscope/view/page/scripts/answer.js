// The answer: what is known of the chosen row or variable and head, with sentences in which the head marks the row, and
// others in which it does not.
import { element, find, minus, number } from "./dom.js";
import { addressOf, attentionType, flat, headName, page, readVariable, scoreOf } from "./numbers.js";
import { drawArcs } from "./pictures.js";
import { choose } from "./state.js";
import { examplesOf, hasHead, judge, readAttention, texts } from "./texts.js";

const SHOWN = 3; // examples of each kind
const KINDS = { clear: "Where the reported head does well", fails: "Where it does badly" };
let turns = 0; // of drawing; only the last one counts

const nameHead = (state) => `Head ${headName(state.head)}${page.attention_types.length ? ", " + page.attention_types[attentionType(state)] : ""}`;

// Reported heads are of the view that the page is named for.
const findRow = (state) => (state.view === page.name ? page.rows.find((row) => row.key === state.variable) : undefined);

const isReported = (row, state) =>
  row.head === headName(state.head) && (!row.attention_type || row.attention_type === state.attention_type);

// The value of a head beside those of all heads.
function describeValue(state) {
  const { values, label, units, baselineText } = readVariable(state);
  const value = values[state.head.layer][state.head.head];
  if (value === null) return `${label}: this head has no value.`;
  const all = flat(values);
  const above = all.filter((other) => other > value).length;
  const mean = all.reduce((sum, other) => sum + other, 0) / all.length;
  const baseline = baselineText ? `; ${baselineText}` : "";
  const rank = above ? `rank ${above + 1} of ${all.length} heads` : `the largest of ${all.length} heads`;
  return `${label}: ${minus(number(value))} ${units}, ${rank}; mean ${minus(number(mean))}${baseline}.`;
}

async function drawExample(example, state, score) {
  const text = texts[example.text];
  const attention = await readAttention(example.text, state, "words", [state.head]);
  const gold = judge(text, score, state.direction, attention);
  const [svg] = drawArcs(attention, gold, gold.length ? gold.map((link) => link.from) : null);
  svg.removeAttribute("aria-labelledby");
  svg.setAttribute("aria-label", text.words.join(" "));
  const right = gold.filter((link) => link.right).length;
  const open = element("button", "open below", { type: "button", class: "plain" });
  open.addEventListener("click", () => {
    choose({ text: String(example.text) });
    find("sentences").scrollIntoView();
  });
  const item = element("li");
  const picture = element("div", null, { class: "scroll sentence", tabindex: "0", role: "group", "aria-label": "Example" });
  picture.append(svg);
  item.append(picture, gold.length ? `${right} of ${gold.length} right; ` : "", open);
  return item;
}

// Where a sentence is wider than its place, the first word that is to be right stands in the middle.
function scrollToGold(picture) {
  const first = picture.querySelector("text.right, text.wrong");
  if (first) picture.scrollLeft = first.getAttribute("x") - picture.clientWidth / 2;
}

async function drawExamples(state, score) {
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

export async function drawAnswer(state) {
  const [row, score, place] = [findRow(state), scoreOf(state), find("answer-examples")];
  const turn = ++turns;
  find("answer-name").textContent = `${nameHead(state)}: ${readVariable(state).title}`;
  find("answer-row").textContent = row && isReported(row, state) ? `${row.answer} ${row.details}` : describeValue(state);
  const link = find("answer-link");
  link.parentElement.hidden = !row || isReported(row, state);
  if (row) {
    link.textContent = `head ${row.head}`;
    link.setAttribute("href", "#" + addressOf(row));
  }
  const shown = row && score && texts.length && hasHead(texts[0], state, state.head);
  const examples = shown ? await drawExamples(state, score) : [];
  if (turn !== turns) return; // something else was chosen meanwhile
  place.replaceChildren(...examples);
  requestAnimationFrame(() => place.querySelectorAll(".sentence").forEach(scrollToGold)); // when there is a layout
  find("answer-note").hidden = !examples.length;
}
