// The colours of the grid: viridis for amounts, blue to red for changes, as hexadecimal RGB.

const VIRIDIS = ["440154", "482475", "414487", "355f8d", "2a788e", "21918c", "22a884", "44bf70", "7ad151", "bddf26", "fde725"];
const RED_BLUE = ["053061", "2166ac", "4393c3", "92c5de", "f7f7f7", "f4a582", "d6604d", "b2182b", "67001f"];

const MIDDLE = 0.179; // the luminance on which black and white can be read equally well (WCAG 2.2)

// Relative luminance of a colour, from 0 to 1 (WCAG 2.2).
function luminance(parts) {
  const [red, green, blue] = parts.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Red, green and blue at a share between 0 and 1.
function blend(share, palette) {
  const place = Math.min(Math.max(share, 0), 1) * (palette.length - 1);
  const low = Math.min(Math.floor(place), palette.length - 2);
  return [0, 2, 4].map((at) => {
    const [from, to] = [palette[low], palette[low + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(from + (to - from) * (place - low));
  });
}

// So many colours of amounts from none to all, as pixels.
export const listColours = (count) => [...Array(count).keys()].map((step) => [...blend(step / (count - 1), VIRIDIS), 255]);

// The colour at a share between 0 and 1, and that of a text which can be read on it.
export function colour(share, palette) {
  const mix = blend(share, palette);
  return { ground: `rgb(${mix.join()})`, ink: luminance(mix) > MIDDLE ? "#000" : "#fff" };
}

export const paletteOf = (diverging) => (diverging ? RED_BLUE : VIRIDIS);
