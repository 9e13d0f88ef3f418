// What is annotated in a sentence and a question is about: mentions of one person or thing, negations and what they negate.
import { texts } from "./texts.js";
import { colourNames } from "./word.js";

const MENTION = "mention", CUE = "cue";
const KINDS = { antecedent: MENTION }; // of the spans of a question; others are called as it is
const ABOUT = { [MENTION]: "bars: mentions, those of one person or thing with one number" };
const MARKED = "bars: the negation, black, and the words that it negates, teal";

const kindOf = (score) => {
  const name = score?.key.split(":")[0];
  return KINDS[name] ?? name;
};

// True of a question about such spans. Like relations, it compares words alone.
export const isOfSpans = (score) => texts.some((text) => listSpans(text, score).length > 0);

// The spans of a text, the longest first: {start, end, kind, label, colour, level, number}: words from start to before the
// end, how many shorter ones lie inside, and the number of a chain. A mention that is alone says nothing.
export function listSpans(text, score) {
  const own = kindOf(score), all = text.spans.map(([start, end, label, kind]) => ({ start, end, label, kind }));
  const has = (name) => all.some(({ kind }) => kind === name);
  if (!has(own) || (own !== MENTION && !has(CUE))) return [];
  const spans = all.filter(({ kind }) => kind === own || (kind === CUE && own !== MENTION));
  const labels = spans.map(({ label }) => label), isAlone = ({ kind, label }) => kind === MENTION && labels.indexOf(label) === labels.lastIndexOf(label);
  const shown = spans.filter((span) => !isAlone(span)).sort((a, b) => b.end - b.start - (a.end - a.start));
  const chains = ["", ...new Set(shown.filter(({ kind }) => kind === MENTION).map(({ label }) => label))], colours = colourNames(chains);
  const level = (span, at) => shown.slice(at + 1).filter((other) => other.start < span.end && span.start < other.end).length;
  return shown.map((span, at) => ({ ...span, level: level(span, at), colour: span.kind === MENTION ? `#${colours[chains.indexOf(span.label)]}` : "", number: Math.max(0, chains.indexOf(span.label)) }));
}

export const describeSpans = (spans) => (spans.length ? ABOUT[spans[0].kind] ?? MARKED : "");
