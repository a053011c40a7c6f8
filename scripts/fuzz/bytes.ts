/** Owns faults in bytes, which know nothing of what the bytes mean. */
import { below, type Random } from './random.ts';

/** The bytes with one fault: a flipped bit, a cut, a hole, something strange inserted, a part twice. */
export function breakBytes(random: Random, bytes: Buffer): Buffer {
  const at = below(random, bytes.length + 1);
  const end = at + below(random, bytes.length - at + 1);
  const before = bytes.subarray(0, at);
  switch (below(random, 5)) {
    case 0: {
      const flipped = Buffer.from(bytes);
      if (at < flipped.length) flipped.writeUInt8(flipped.readUInt8(at) ^ (1 << below(random, 8)), at);
      return flipped;
    }
    case 1:
      return before;
    case 2:
      return Buffer.concat([before, bytes.subarray(end)]);
    case 3: {
      const strange = Buffer.from(Array.from({ length: 1 + below(random, 4) }, () => below(random, 256)));
      return Buffer.concat([before, strange, bytes.subarray(at)]);
    }
    default:
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)]);
  }
}
