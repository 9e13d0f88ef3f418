// The colours of the grid as hexadecimal RGB: blue for amounts, blue to red for changes. The luminance of amounts is
// monotone, starting at the background of the page.
import { isDark } from "./theme.js";

const AMOUNTS = {
  light: ["f1f4f6", "d9e6ee", "b0d0e3", "7db3d5", "4791c1", "2470a8", "124f86", "0a3260"],
  dark: ["1d2329", "1c3547", "1c4d6d", "226a95", "3a8abb", "66abd5", "9ccbe8", "d9eefb"],
};
const RED_BLUE = ["053061", "2166ac", "4393c3", "92c5de", "f7f7f7", "f4a582", "d6604d", "b2182b", "67001f"];

const MIDDLE = 0.179; // the luminance at which black and white text are equally readable (WCAG 2.2)

// Return the relative luminance of a colour, from 0 to 1 (WCAG 2.2).
function luminance(parts) {
  const [red, green, blue] = parts.map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

// Return red, green and blue at a share between 0 and 1.
function blend(share, palette) {
  const place = Math.min(Math.max(share, 0), 1) * (palette.length - 1);
  const low = Math.min(Math.floor(place), palette.length - 2);
  return [0, 2, 4].map((at) => {
    const [from, to] = [palette[low], palette[low + 1]].map((hex) => parseInt(hex.slice(at, at + 2), 16));
    return Math.round(from + (to - from) * (place - low));
  });
}

// List the colours of amounts from 0 to 1, as pixels.
export const listColours = (count) => [...Array(count).keys()].map((step) => [...blend(step / (count - 1), paletteOf(false)), 255]);

// Return a colour of red, green and blue parts, and a text colour that is readable on it.
export const paintOf = (parts) => ({ parts, ground: `rgb(${parts.join()})`, ink: luminance(parts) > MIDDLE ? "#000" : "#fff" });

// Return the colour at a share between 0 and 1.
export const colour = (share, palette) => paintOf(blend(share, palette));

export const paletteOf = (diverging) => (diverging ? RED_BLUE : AMOUNTS[isDark() ? "dark" : "light"]);
