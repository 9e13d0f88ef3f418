// The colours of the grid: viridis for amounts, blue to red for changes, as hexadecimal RGB.

export const VIRIDIS = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
export const RED_BLUE = ["053061", "2166ac", "4393c3", "92c5de", "f7f7f7", "f4a582", "d6604d", "b2182b", "67001f"];

// The colour at a share between 0 and 1, and that of a text which can be read on it.
export function colour(share, palette) {
  const place = Math.min(Math.max(share, 0), 1) * (palette.length - 1);
  const low = Math.min(Math.floor(place), palette.length - 2);
  const mix = [0, 2, 4].map((at) => {
    const [from, to] = [palette[low], palette[low + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(from + (to - from) * (place - low));
  });
  const light = 0.2126 * mix[0] + 0.7152 * mix[1] + 0.0722 * mix[2];
  return { ground: `rgb(${mix.join()})`, ink: light > 120 ? "#000" : "#fff" };
}
