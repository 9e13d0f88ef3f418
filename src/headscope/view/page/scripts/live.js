// Texts that the reader types, with the attention of the model of a live page.
import { find } from "./dom.js";
import { ask, isLive } from "./server.js";
import { choose } from "./state.js";
import { addText } from "./texts.js";

async function showText() {
  const [part, note] = [find("live"), find("live-note")];
  part.setAttribute("aria-busy", "true");
  note.textContent = "The model reads the text \u2026";
  try {
    const answer = await ask("attention", { text: find("live-text").value });
    choose({ text: String(addText(answer.text)), mode: "one" });
    note.textContent = answer.note;
    find("live-text").blur(); // the keys of the page work again
  } catch (error) {
    note.textContent = error.message;
  } finally {
    part.removeAttribute("aria-busy");
  }
}

export function buildLive() {
  find("live").hidden = !isLive;
  find("live-absent").hidden = isLive;
  find("live-run").addEventListener("click", showText); // no form, since the frame of a notebook may not submit one
  find("live-text").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    showText();
  });
  if (isLive && location.protocol !== "about:") find("live-text").focus(); // the focus stays in the notebook
}
