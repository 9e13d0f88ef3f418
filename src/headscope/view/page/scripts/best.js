// The heads with the highest values in the grid. In a comparison, movers.js lists the heads that differ most instead.
import { element, find, minus, number } from "./dom.js";
import { addressOf, headName, readChange, readVariable, scoreOf } from "./numbers.js";

const SHOWN = 5;

export function drawBest(state) {
  const { values, title: name, units } = readVariable(state);
  const heads = values.flatMap((row, layer) => row.map((value, head) => ({ head: headName({ layer, head }), value })));
  const best = heads.filter(({ value }) => value !== null).sort((a, b) => b.value - a.value).slice(0, SHOWN);
  const links = best.flatMap(({ head, value }, place) => [
    place ? ", " : "", element("a", head, { href: "#" + addressOf({ head }) }), ` ${minus(number(value))}`,
  ]);
  const title = scoreOf(state) ? `Best heads for \u201c${name}\u201d on all texts` : `Heads with the highest values of \u201c${name}\u201d`;
  find("answer-best").hidden = !best.length || readChange(state) !== null;
  find("answer-best").replaceChildren(`${title} (${units}): `, ...links, ".");
}
