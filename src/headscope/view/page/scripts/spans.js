// The annotated spans of a sentence that a question is about: mentions of one person or thing, negations and their
// scopes.
import { texts } from "./texts.js";
import { colourNames } from "./word.js";

const MENTION = "mention", CUE = "cue";
const KINDS = { antecedent: MENTION }; // the kind of span for a question; other kinds have the name of their question
const ABOUT = { [MENTION]: "bars: mentions, those of one person or thing with one number" };
const MARKED = "bars: the negation, black, and the words that it negates, teal";

const kindOf = (score) => {
  const name = score?.key.split(":")[0];
  return KINDS[name] ?? name;
};

// Return true for a question about such spans. As for relations, its score compares words only.
export const isOfSpans = (score) => texts.some((text) => listSpans(text, score).length > 0);

// List the spans of a text, the longest first: {start, end, kind, label, colour, level, number}. `end` is exclusive,
// `level` counts shorter spans that overlap, and `number` is the number of the chain. A mention without another mention
// of its chain is left out.
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
