// What stands packed in the page: gzip in base64.
import { inflate } from "./inflate.js";

const HEADER = 10, TRAILER = 8; // bytes of gzip before and behind the deflated data; Python writes no optional fields

async function decompress(bytes) {
  if (typeof DecompressionStream === "undefined") return inflate(bytes.subarray(HEADER, -TRAILER));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export const unpackBytes = (text) => decompress(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)));

export const unpackJson = async (text) => JSON.parse(new TextDecoder().decode(await unpackBytes(text)));
