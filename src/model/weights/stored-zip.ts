/** Owns the reading of a ZIP archive whose entries are stored as they are, the form in which PyTorch saves. */

const endSignature = 0x06054b50;
const entrySignature = 0x02014b50;
const localSignature = 0x04034b50;
/** Size of the end record without its comment, and of the fixed parts of the others. @unit bytes */
const endBytes = 22;
const entryBytes = 46;
const localBytes = 30;
/** Longest comment behind the end record. @unit bytes */
const maxCommentBytes = 0xffff;

function findEnd(view: DataView): number {
  const first = Math.max(0, view.byteLength - endBytes - maxCommentBytes);
  for (let offset = view.byteLength - endBytes; offset >= first; offset -= 1) {
    if (view.getUint32(offset, true) === endSignature) return offset;
  }
  throw new Error('is no ZIP archive');
}

/**
 * The bytes of each entry by its name. Throws where the archive is damaged or compressed.
 * @source PKWARE APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.16
 */
export function readStoredZip(bytes: Uint8Array): Map<string, Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = findEnd(view);
  const count = view.getUint16(end + 10, true);
  let offset = view.getUint32(end + 16, true);
  const entries = new Map<string, Uint8Array>();
  for (let index = 0; index < count; index += 1) {
    if (view.getUint32(offset, true) !== entrySignature) throw new Error('is a damaged ZIP archive');
    if (view.getUint16(offset + 10, true) !== 0) throw new Error('is a compressed ZIP archive');
    const size = view.getUint32(offset + 24, true);
    const nameLength = view.getUint16(offset + 28, true);
    const local = view.getUint32(offset + 42, true);
    const name = Buffer.from(bytes.subarray(offset + entryBytes, offset + entryBytes + nameLength)).toString('utf8');
    if (view.getUint32(local, true) !== localSignature) throw new Error('is a damaged ZIP archive');
    const start = local + localBytes + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    if (start + size > bytes.byteLength) throw new Error('is cut off');
    entries.set(name, bytes.subarray(start, start + size));
    offset += entryBytes + nameLength + view.getUint16(offset + 30, true) + view.getUint16(offset + 32, true);
  }
  return entries;
}
