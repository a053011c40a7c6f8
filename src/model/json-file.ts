/** Owns the reading of the JSON files that describe a model. */
import { readFile } from 'node:fs/promises';
import type { ZodType } from 'zod';
import { ConfigurationError } from '../errors.ts';

/** The code of a file system error, such as `ENOENT`; an empty text for anything else. */
export function fileErrorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/**
 * The file's content, checked; null where there is no such file.
 * @throws ConfigurationError naming the file where it cannot be read or has another form
 */
export async function readOptionalJson<Content>(path: string, schema: ZodType<Content>): Promise<Content | null> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (fileErrorCode(error) === 'ENOENT') return null;
    throw new ConfigurationError([`${path}: cannot be read (${fileErrorCode(error)})`]);
  }
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new ConfigurationError([`${path}: is not JSON`]);
  }
  const parsed = schema.safeParse(content);
  if (parsed.success) return parsed.data;
  const details = parsed.error.issues.map(({ path: member, message }) => `${member.map(String).join('.')}: ${message}`);
  throw new ConfigurationError([`${path}: ${details.join('; ')}`]);
}

/**
 * The file's content, checked.
 * @throws ConfigurationError naming the file, also where it is missing
 */
export async function readJson<Content>(path: string, schema: ZodType<Content>): Promise<Content> {
  const content = await readOptionalJson(path, schema);
  if (content === null) throw new ConfigurationError([`${path}: is missing`]);
  return content;
}
