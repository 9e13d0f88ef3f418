// The model of a live page: the server of `headscope explore`, or the kernel of a notebook. Other pages have no model.
import { find } from "./dom.js";

const source = find("live-data");

export const isLive = source !== null;

const isFramed = location.protocol === "about:"; // in a notebook, where the widget passes questions on
let asked = 0;

async function askServer(name, question) {
  const { token } = JSON.parse(source.textContent);
  const headers = { "Content-Type": "application/json", "X-Headscope-Token": token };
  const response = await fetch(`/${name}`, { method: "POST", headers, body: JSON.stringify(question) }).catch(() => null);
  if (!response) throw new Error("The server has ended; start headscope explore again.");
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}

function askNotebook(name, question) {
  const id = `${++asked} ${Math.random()}`; // unique, since other views of the same widget hear the answers too
  return new Promise((done, refuse) => {
    function listen(event) {
      if (event.source !== parent || event.data?.id !== id) return;
      removeEventListener("message", listen);
      if ("refusal" in event.data) refuse(new Error(event.data.refusal));
      else done(event.data.answer);
    }
    addEventListener("message", listen);
    parent.postMessage({ id, name, question }, "*");
  });
}

// Return the answer to a question; without an answer, throw an error with a sentence.
export const ask = isFramed ? askNotebook : askServer;
