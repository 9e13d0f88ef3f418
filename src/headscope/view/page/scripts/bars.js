// Horizontal bars from 0 to `top`, each with a label and a value: {label, isThis, value, interval, tick, kind, text,
// about}.
import { element } from "./dom.js";

const share = (value, top) => `${(100 * Math.min(1, Math.max(0, value / top))).toFixed(1)}%`;

function drawTrack({ value, interval = [], tick = null, kind = "" }, top) {
  const track = element("span", null, { class: "track" });
  const add = (name, left, width) => {
    const part = element("i", null, { class: name });
    Object.assign(part.style, { left, width });
    track.append(part);
  };
  if (value !== null) add(`value ${kind}`, "0", share(value, top));
  const [lower, upper] = interval.map((end) => end ?? null);
  if ((lower ?? null) !== null && upper !== null) add("interval", share(lower, top), share(upper - lower, top));
  if (tick !== null) add("tick", share(tick, top), "");
  return track;
}

export function drawBars(box, bars, top = 1) {
  box.replaceChildren(...bars.flatMap((bar) => {
    const label = element("span", null, bar.isThis ? { class: "this" } : {}), value = element("span", bar.text);
    label.append(bar.label);
    for (const part of [label, value]) part.title = bar.about;
    const track = drawTrack(bar, top);
    track.title = bar.about;
    return [label, track, value];
  }));
}
