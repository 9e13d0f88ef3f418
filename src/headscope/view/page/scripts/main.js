// Builds the parts of the page and draws them whenever the reader chooses something else.
import { buildControls, drawControls } from "./controls.js";
import { find } from "./dom.js";
import { buildGrid, drawGrid } from "./grid.js";
import { drawProfile } from "./profile.js";
import { buildSentences, drawSentences } from "./sentences.js";
import { begin, hasVariables, onChange } from "./state.js";
import { buildTables, markRows } from "./tables.js";

function build() {
  let current = null;
  buildTables();
  if (!hasVariables) {
    find("heads").parentElement.hidden = true;
    return;
  }
  buildControls();
  buildGrid((head) => drawProfile(current, head ?? current.head));
  buildSentences();
  onChange((state) => (current = state), drawControls, drawGrid, drawProfile, markRows, drawSentences);
  begin();
}

build();
