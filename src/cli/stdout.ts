/** Owns printing what a command was asked for. */
import { writeToStdout } from '../bulk/write/stdout.ts';

/**
 * Prints lines; a reader that has seen enough, such as `head`, is no failure.
 * @throws Error of the system, such as that of a full disk
 */
export async function print(text: string): Promise<void> {
  await writeToStdout(Buffer.from(`${text}\n`));
}
