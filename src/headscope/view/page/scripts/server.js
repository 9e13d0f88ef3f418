// The server behind a page that `headscope explore` serves; other pages have none.
import { find } from "./dom.js";

const source = find("live-data");

export const isLive = source !== null;

// The answer to a question; an error with a sentence where there is none.
export async function ask(path, question) {
  const { token } = JSON.parse(source.textContent);
  const headers = { "Content-Type": "application/json", "X-Headscope-Token": token };
  const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(question) }).catch(() => null);
  if (!response) throw new Error("The server has ended; start headscope explore again.");
  if (!response.ok) throw new Error(await response.text());
  return response.json();
}
