/** Owns ZIP archives that tests make. */
import { crc32, deflateRawSync } from 'node:zlib';

/** An entry of an archive. */
export interface ZipEntry {
  readonly path: string;
  readonly content: Buffer;
  /** Deflated unless it says so. */
  readonly isStored?: boolean;
}

interface PackedEntry {
  readonly name: Buffer;
  readonly method: number;
  readonly checksum: number;
  readonly packed: Buffer;
  readonly sizeBytes: number;
}

function pack({ path, content, isStored = false }: ZipEntry): PackedEntry {
  return {
    name: Buffer.from(path),
    method: isStored ? 0 : 8,
    checksum: crc32(content),
    packed: isStored ? content : deflateRawSync(content),
    sizeBytes: content.byteLength,
  };
}

/** The fields that both headers of an entry share, from the version that is needed to the length of the extra field. */
function sharedFields({ name, method, checksum, packed, sizeBytes }: PackedEntry, extraBytes: number): Buffer {
  const fields = Buffer.alloc(26);
  fields.writeUInt16LE(20, 0);
  fields.writeUInt16LE(method, 4);
  fields.writeUInt32LE(checksum, 10);
  fields.writeUInt32LE(packed.byteLength, 14);
  fields.writeUInt32LE(sizeBytes, 18);
  fields.writeUInt16LE(name.byteLength, 22);
  fields.writeUInt16LE(extraBytes, 24);
  return fields;
}

/** Extra fields that only the header before the content has, as many archives have them. */
const localExtra = Buffer.from([0xfe, 0xca, 0, 0]);

/** An archive of these entries, with a comment at its end. */
export function zipOf(entries: readonly ZipEntry[], comment = 'made by a test'): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const entry of entries.map(pack)) {
    const local = Buffer.concat([
      Buffer.from('PK\u0003\u0004'),
      sharedFields(entry, localExtra.byteLength),
      entry.name,
      localExtra,
      entry.packed,
    ]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    directory.push(Buffer.from('PK\u0001\u0002\u0014\u0000'), sharedFields(entry, 0), rest, entry.name);
    locals.push(local);
    offset += local.byteLength;
  }
  const directoryBytes = directory.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const end = Buffer.alloc(22);
  end.write('PK\u0005\u0006', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directoryBytes, 12);
  end.writeUInt32LE(offset, 16);
  end.writeUInt16LE(Buffer.byteLength(comment), 20);
  return Buffer.concat([...locals, ...directory, end, Buffer.from(comment)]);
}
