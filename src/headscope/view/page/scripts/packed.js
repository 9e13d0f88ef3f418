// Packed data of the page: gzip in base64.

export const canUnpack = typeof DecompressionStream !== "undefined"; // browsers from before May 2023 may lack it

async function decompress(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Return the bytes of a text in base64; browsers from before 2025 have no built-in function for it.
export function readBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

export const unpackBytes = (text) => decompress(readBase64(text));

export const unpackJson = async (text) => JSON.parse(new TextDecoder().decode(await unpackBytes(text)));
