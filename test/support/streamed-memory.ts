/** Owns how much memory a process may take that passes a large file on: far less than the file. */

/** Size of the file. @unit bytes */
export const streamedBytes = 300_000_000;

/** Node 22 and newer need 10 MB more to begin with, and let more young garbage lie. */
const isLavish = Number(process.versions.node.split('.')[0]) >= 22;

/** What the process may have had at most, from its start to its end. @unit bytes */
export const maxStreamingBytes = isLavish ? 150_000_000 : 100_000_000;
