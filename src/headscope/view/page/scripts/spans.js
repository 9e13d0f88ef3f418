// What is annotated in a sentence and a question is about: mentions of one person or thing, negations and what they negate.
import { colourNames } from "./word.js";

const KINDS = { antecedent: ["mention"], scope: ["scope", "cue"] };
const ABOUT = { mention: "bars: mentions, those of one person or thing with one number", scope: "bars: the negation, black, and the words that it negates, teal" };

const kindsOf = (score) => KINDS[/^[a-z]+(?=:|$)/.exec(score?.key ?? "")?.[0]] ?? [];

// True of a question about such spans. Like relations, it compares words alone.
export const isOfSpans = (score) => kindsOf(score).length > 0;

// The spans of a text, the longest first: {start, end, kind, label, colour, level}: words from start to before the end, how
// many shorter ones lie inside. A mention that is alone says nothing.
export function listSpans(text, score) {
  const kinds = kindsOf(score), spans = text.spans.filter(([, , , kind]) => kinds.includes(kind)).map(([start, end, label, kind]) => ({ start, end, label, kind }));
  const labels = spans.map(({ label }) => label), isAlone = ({ kind, label }) => kind === "mention" && labels.indexOf(label) === labels.lastIndexOf(label);
  const shown = spans.filter((span) => !isAlone(span)).sort((a, b) => b.end - b.start - (a.end - a.start));
  const chains = ["", ...new Set(shown.filter(({ kind }) => kind === "mention").map(({ label }) => label))], colours = colourNames(chains);
  const level = (span, at) => shown.slice(at + 1).filter((other) => other.start < span.end && span.start < other.end).length;
  return shown.map((span, at) => ({ ...span, level: level(span, at), colour: span.kind === "mention" ? `#${colours[chains.indexOf(span.label)]}` : "", number: Math.max(0, chains.indexOf(span.label)) }));
}

export const describeSpans = (spans) => (spans.length ? ABOUT[spans[0].kind] ?? ABOUT.scope : "");
