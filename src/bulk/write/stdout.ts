/** Owns writing to stdout: all of it, or the reason why not. */
import { fstatSync, write } from 'node:fs';
import { promisify } from 'node:util';

const writeSome = promisify(write);

let isHeard = false;

/**
 * Writes all bytes; false where whoever read them has stopped, such as `head`.
 * @throws Error of the system, such as that of a full disk
 */
export async function writeToStdout(bytes: Buffer): Promise<boolean> {
  // Each write tells of an error too; unheard it would end the process with a stack.
  if (!isHeard) process.stdout.on('error', () => undefined);
  isHeard = true;
  try {
    await (isFile() ? writeToFile(bytes) : writeToStream(bytes));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return false;
    throw error;
  }
}

/** Whether Node writes there without looking at how much was written: the last bytes before a full disk, say. */
function isFile(): boolean {
  const found = fstatSync(process.stdout.fd);
  return found.isFile() || (found.isCharacterDevice() && !process.stdout.isTTY);
}

async function writeToFile(bytes: Buffer): Promise<void> {
  for (let done = 0; done < bytes.length;) {
    done += (await writeSome(process.stdout.fd, bytes, done, bytes.length - done, null)).bytesWritten;
  }
}

const writeToStream = (bytes: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(bytes, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
