// The heads with the highest values of what the grid shows. Of a comparison, movers.js lists those that differ most.
import { element, find, minus, number } from "./dom.js";
import { addressOf, headName, readChange, readVariable, scoreOf } from "./numbers.js";

const SHOWN = 5;

export function drawBest(state) {
  const { values, label, units } = readVariable(state);
  const heads = values.flatMap((row, layer) => row.map((value, head) => ({ name: headName({ layer, head }), value })));
  const best = heads.filter(({ value }) => value !== null).sort((a, b) => b.value - a.value).slice(0, SHOWN);
  const links = best.flatMap(({ name, value }, place) => [
    place ? ", " : "", element("a", name, { href: "#" + addressOf({ head: name }) }), ` ${minus(number(value))}`,
  ]);
  const title = scoreOf(state) ? `Best heads for ${label} on all texts` : `Heads with the highest values of ${label}`;
  find("answer-best").hidden = !best.length || readChange(state) !== null;
  find("answer-best").replaceChildren(`${title} (${units}): `, ...links, ".");
}
