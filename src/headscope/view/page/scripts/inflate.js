// Deflated bytes in full length (RFC 1951), for browsers that have no DecompressionStream.

const LONGEST_CODE = 15;
const ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15]; // of the lengths of codes of lengths
const FIXED = [...Array(288).keys()].map((symbol) => (symbol < 144 ? 8 : symbol < 256 ? 9 : symbol < 280 ? 7 : 8));

// Bases and extra bits of lengths from 3 on, and of distances from 1 on: each number of bits serves `each` codes.
function listRanges(first, codes, each) {
  const ranges = [];
  let base = first;
  for (let code = 0; code < codes; code++) {
    const bits = Math.max(0, Math.floor(code / each) - 1);
    ranges.push({ base, bits });
    base += 2 ** bits;
  }
  return ranges;
}
const LENGTHS = [...listRanges(3, 28, 4), { base: 258, bits: 0 }];
const DISTANCES = listRanges(1, 30, 2);

// A canonical Huffman code from the lengths of its words: how many words have each length, and their symbols in order.
function makeCode(lengths) {
  const counts = new Array(LONGEST_CODE + 1).fill(0);
  for (const length of lengths) if (length) counts[length] += 1;
  const symbols = [...lengths.keys()].filter((symbol) => lengths[symbol]).sort((a, b) => lengths[a] - lengths[b] || a - b);
  return { counts, symbols };
}

class Bits {
  constructor(bytes) {
    Object.assign(this, { bytes, place: 0, held: 0, count: 0 });
  }

  // A number of so many bits, the lowest first.
  read(bits) {
    while (this.count < bits) {
      if (this.place >= this.bytes.length) throw new Error("the packed data end too early");
      this.held |= this.bytes[this.place++] << this.count;
      this.count += 8;
    }
    const value = this.held & ((1 << bits) - 1);
    this.held >>>= bits;
    this.count -= bits;
    return value;
  }

  readSymbol({ counts, symbols }) {
    let word = 0, first = 0, before = 0; // the first word of a length, and the symbols of shorter words
    for (let length = 1; length <= LONGEST_CODE; length++) {
      word |= this.read(1);
      if (word - first < counts[length]) return symbols[before + word - first];
      before += counts[length];
      first = (first + counts[length]) << 1;
      word <<= 1;
    }
    throw new Error("the packed data have an unknown code");
  }

  // The bytes of a stored block, which begin at a whole byte.
  readStored() {
    this.held = this.count = 0;
    const size = this.bytes[this.place] | (this.bytes[this.place + 1] << 8);
    this.place += 4 + size;
    return this.bytes.subarray(this.place - size, this.place);
  }
}

function readLengths(bits) {
  const [literals, distances, count] = [257 + bits.read(5), 1 + bits.read(5), 4 + bits.read(4)];
  const short = new Array(ORDER.length).fill(0);
  for (let place = 0; place < count; place++) short[ORDER[place]] = bits.read(3);
  const code = makeCode(short), lengths = [];
  while (lengths.length < literals + distances) {
    const symbol = bits.readSymbol(code);
    const [value, times] = symbol < 16 ? [symbol, 1] : symbol === 16 ? [lengths.at(-1), 3 + bits.read(2)] : [0, symbol === 17 ? 3 + bits.read(3) : 11 + bits.read(7)];
    for (let time = 0; time < times; time++) lengths.push(value);
  }
  return [lengths.slice(0, literals), lengths.slice(literals)];
}

export function inflate(packed) {
  const bits = new Bits(packed), bytes = [];
  let last = false;
  while (!last) {
    last = bits.read(1) === 1;
    const kind = bits.read(2);
    if (kind === 0) {
      for (const byte of bits.readStored()) bytes.push(byte);
      continue;
    }
    const [literals, distances] = (kind === 1 ? [FIXED, new Array(30).fill(5)] : readLengths(bits)).map(makeCode);
    for (let symbol = bits.readSymbol(literals); symbol !== 256; symbol = bits.readSymbol(literals)) {
      if (symbol < 256) {
        bytes.push(symbol);
        continue;
      }
      const length = LENGTHS[symbol - 257].base + bits.read(LENGTHS[symbol - 257].bits);
      const range = DISTANCES[bits.readSymbol(distances)];
      const start = bytes.length - range.base - bits.read(range.bits);
      for (let place = start; place < start + length; place++) bytes.push(bytes[place]);
    }
  }
  return Uint8Array.from(bytes);
}
